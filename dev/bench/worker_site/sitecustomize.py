"""Python runs this when it starts with this folder on its path; dev.bench.worker_steps measures Spark's workers."""  # noqa: INP001 - no package

import sys

if "pyspark.daemon" in sys.orig_argv:
    from dev.bench import worker_steps

    worker_steps.install()

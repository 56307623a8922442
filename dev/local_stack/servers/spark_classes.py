"""The options with which Spark's drivers of the tests start: with an archive of the classes that they load.

tests.support.make_spark_classes makes it. A start and a streaming query take 4.4 CPU seconds of the driver's JVM, and
10.6 without it. The JVM checks that the archive is of its own version and jars, and works without one that is not, or
that is not there yet.
"""

from __future__ import annotations

from dev.local_stack.process.paths import local_folder

OPTIONS = "SPARK_SUBMIT_OPTS"  # what Spark's own scripts give the driver's JVM
ARCHIVE = "spark.jsa"
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
FOLDER = local_folder() / "classes"


def environment() -> dict[str, str]:
    return {OPTIONS: f"-XX:SharedArchiveFile={FOLDER / ARCHIVE} {QUIET}"}

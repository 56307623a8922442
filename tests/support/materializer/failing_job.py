"""The Spark job that failing_run defines.

A module of its own: what is pickled to the workers must not come from `__main__`.
"""

from __future__ import annotations

from tests.support.materializer.failing_run import main

if __name__ == "__main__":
    main()

"""The Sparks under which the runs over the whole path are made."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Master(NamedTuple):
    """A master URL, and the options that spark-defaults.conf has."""

    url: str
    options: Mapping[str, str]


# One executor at first, and more while the workers are behind. The idle time is longer than a pause under load.
_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.executorIdleTimeout": "10s",
    "spark.executor.cores": "1",
}
MASTERS: Mapping[str, Master] = {
    "two-executors": Master("local-cluster[2,1,1024]", {}),
    "two-cores": Master("local-cluster[2,2,1024]", {}),
    "dynamic": Master("local-cluster[3,1,1024]", _DYNAMIC),
    "local": Master("local[2,4]", {}),
}


@contextmanager
def spark_defaults(options: Mapping[str, str]) -> Iterator[None]:
    """Sparks that are started from here have these options."""
    with tempfile.TemporaryDirectory(prefix="spark-conf-") as folder:
        lines = [f"{name} {value}\n" for name, value in options.items()]
        Path(folder, "spark-defaults.conf").write_text("".join(lines))
        before = os.environ.get("SPARK_CONF_DIR")
        os.environ["SPARK_CONF_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["SPARK_CONF_DIR"]
            else:
                os.environ["SPARK_CONF_DIR"] = before

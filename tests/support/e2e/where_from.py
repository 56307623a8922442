"""A main file for spark-submit: says where the driver and each of two executors have their modules from."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SAYS = "modules: "
OURS = ("cassandra_storage", "cdc_common")
OF_WORKERS = (
    "materializer.worker.open_partitions",
    "materializer.worker.worker_loop",
    "rocksdict",
    "confluent_kafka",
    "pyarrow",
    "fastavro",
    "pydantic",
    "structlog",
)


def files(names: Iterable[str]) -> dict[str, str]:
    """Module -> its file."""
    return {name: str(importlib.import_module(name).__file__) for name in names}


def files_in_executor(_: Iterable[int]) -> Iterator[dict[str, str]]:
    yield {**files((*OURS, *OF_WORKERS)), "sys.prefix": sys.prefix}


def main() -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - the test that runs this file needs its names only

    context = SparkContext.getOrCreate()
    # Executors of one core, and a barrier, which starts its tasks together: one in each.
    found = context.parallelize(range(2), 2).barrier().mapPartitions(files_in_executor).collect()
    sys.stdout.write(f"{SAYS}{json.dumps([files((*OURS, 'materializer.job.run')), *found])}\n")
    sys.stdout.flush()
    context.stop()


if __name__ == "__main__":
    main()

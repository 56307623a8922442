"""Downloads ahead of time what the servers need: `python -m dev.local_stack.install.prefetch [--versions 5.0,4.1]`.

It downloads nothing twice, and nothing that the demo does not need. A start downloads what it still lacks.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from dev.local_stack.java.jars import KAFKA, install
from dev.local_stack.java.runtime import find_java
from dev.local_stack.servers.cassandra_versions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.java.jars import JarSet

JAVA = 17  # Kafka and Spark
DEMO = ("5.0",)  # Cassandra's lines


def needed_jars(versions: Sequence[str]) -> list[JarSet]:
    """The sets for these Cassandra lines and Kafka; Spark's come with PySpark."""
    return list(dict.fromkeys([*(VERSIONS[line].jars for line in versions), KAFKA]))


def needed_java(versions: Sequence[str]) -> list[int]:
    """Java's major versions for these Cassandra lines, Kafka and Spark."""
    return sorted({JAVA, *(VERSIONS[line].java for line in versions)}, reverse=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("dev.local_stack.install.prefetch", description=__doc__)
    parser.add_argument(
        "--versions", default=",".join(DEMO), help=f"Cassandra lines, by commas: {', '.join(VERSIONS)} (default 5.0)"
    )
    chosen = parser.parse_args(arguments).versions.split(",")
    for line in chosen:
        if line not in VERSIONS:
            parser.error(f"Cassandra {line} is not one of {', '.join(VERSIONS)}")
    try:
        bring(chosen)
    except CdcError as error:
        print_progress(f"{error.code.text} {error.problem}\n{error.fix}")
        return error.code.exit_status
    return 0


def bring(versions: Sequence[str]) -> None:
    """Install the Java runtimes and the jars. Raises CdcError."""
    started = time.monotonic()
    for major in needed_java(versions):
        print_progress(f"Java {major}: {find_java(major, print_progress).describe()}")
    bring_jars(versions)
    print_progress(f"Java and jars are there ({time.monotonic() - started:.0f} s).")


def bring_jars(versions: Sequence[str]) -> None:
    """Install the jars, the sets side by side. Raises CdcError."""
    sets = needed_jars(versions)
    with ThreadPoolExecutor(len(sets)) as pool:
        list(pool.map(lambda jars: install(jars, print_progress), sets))


_speaking = threading.Lock()


def print_progress(text: str) -> None:
    """A whole line at a time, from any thread."""
    with _speaking:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())

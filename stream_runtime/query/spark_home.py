"""A home for a local cluster of Spark: links to the installation, and a folder for executors that this user can write.

The worker of a local cluster makes the folders of its executors in $SPARK_HOME/work, and nothing moves it: neither
SPARK_WORKER_DIR nor spark.local.dir is read. Where root owns the installation, or its file system is read-only, the
worker ends the whole JVM.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

_HOME = "SPARK_HOME"
_WORK = "work"


@contextmanager
def writable_home() -> Iterator[None]:
    """Make the home, which the JVM that is started within the context has. It is deleted when this process ends,
    except for the folders of executors that are still there: these have their logs.
    """
    before = os.environ.get(_HOME)
    home = make_home(Path(before or Path(pyspark.__file__).parent), Path(tempfile.gettempdir()))
    _homes.append(home)
    atexit.register(delete_home, home)
    os.environ[_HOME] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HOME]
        else:
            os.environ[_HOME] = before


def work_folder(application: str) -> Path | None:
    """The folder of the executors of an application; None if this process has made no home."""
    return _homes[-1] / _WORK / application if _homes else None


def make_home(installed: Path, folder: Path) -> Path:
    """Make a new folder: a link to each file and folder of the installation, and an empty folder for executors."""
    home = Path(tempfile.mkdtemp(prefix="cassandra-cdc-spark-", dir=folder))
    for entry in installed.resolve().iterdir():
        if entry.name != _WORK:
            (home / entry.name).symlink_to(entry)
    (home / _WORK).mkdir()
    return home


def delete_home(home: Path) -> None:
    """Delete the links, and the folders unless they have something."""
    with suppress(OSError):
        for entry in home.iterdir():
            if entry.is_symlink():
                entry.unlink()
        (home / _WORK).rmdir()
        home.rmdir()


_homes: list[Path] = []  # of the JVM that this process has started

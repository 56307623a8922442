"""The Python in which Spark plans the job's data source, beside the driver.

Spark takes the executors' Python for it, PYSPARK_PYTHON. Where the executors unpack an archive, that is a path in their
working folder, `./environment/bin/python`, which is not in the driver's. The driver's own environment is what was
packed, so a link to it stands in for the archive.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def planning_python(executable: str) -> Iterator[None]:
    """The executors' Python runs here too, or CdcError(SPARK_SETTING). A name without a folder is the PATH's."""
    path = Path(executable)
    if len(path.parts) == 1 or path.exists():
        yield
        return
    link = Path(path.parts[0])
    if path.is_absolute() or ".." in path.parts or not Path(sys.prefix, *path.parts[1:]).exists():
        raise _missing(executable, f"{sys.prefix} has no such file either")
    try:
        if link.is_symlink():  # to an environment that has gone
            link.unlink()
        link.symlink_to(sys.prefix, target_is_directory=True)
    except OSError as error:
        raise _missing(executable, f"a link {link.absolute()} cannot be made: {error}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            link.unlink()


def _missing(executable: str, reason: str) -> CdcError:
    return CdcError(
        Code.SPARK_SETTING,
        f"The executors' Python, PYSPARK_PYTHON={executable}, is not on the driver's machine ({reason}). Spark plans "
        "the job with it.",
        "Start the driver in a folder in which this path leads to a Python with the same packages, for instance by a "
        "link to the environment that was packed.",
    )

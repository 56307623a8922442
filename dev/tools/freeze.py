"""Freezes vectors of every format for this version: `python -m dev.tools.freeze` (make freeze).

They go into tests/vectors/releases/VERSION, and every later version must read them with the same meaning
(tests/unit/dev/tools/test_frozen.py). A released version is never frozen again: --again is for one that is not yet out.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dev.tools.distribution import read_project
from tests.support.frozen.formats import FORMATS
from tests.support.frozen.vectors import RELEASES, differences, write_vectors

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option("--again", is_flag=True, help="Replace the vectors of this version, which is not released yet.")
def main(*, again: bool) -> None:
    """Write what the present code makes of every format, and what it means."""
    folder = RELEASES / read_project().version
    if folder.exists() and not again:
        click.echo(
            f"{folder} is there: this version is frozen. --again replaces it while it is not released.", err=True
        )
        sys.exit(1)
    freeze(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    click.echo(f"{folder}: {len(FORMATS)} formats, {size / 1024:.0f} KiB")


def freeze(folder: Path) -> None:
    """AssertionError if the present code does not read what it writes."""
    folder.mkdir(parents=True, exist_ok=True)
    for format_ in FORMATS:
        vectors = format_.make()
        data = {vector.name: vector.data for vector in vectors}
        for vector in vectors:
            wrong = differences(vector.meaning, format_.read(vector.name, data))
            assert not wrong, f"{format_.name}, {vector.name}: {wrong}"
        write_vectors(folder / f"{format_.name}.json", vectors)


if __name__ == "__main__":
    main()

"""The console script cassandra-filler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-filler",
    tables=("cassandra", "filler", "log"),
    help="Bounds how long a write waits in the commit log of a quiet cluster: writes a little of its own.",
)


@main.program_command(
    "run",
    flags={
        "--bytes-per-second": "filler.bytes_per_second",
        "--write-bytes": "filler.write_bytes",
    },
)
def run(settings: Settings) -> None:
    """Writes until it is stopped."""
    from filler.write import run as write  # noqa: PLC0415 - --help and config need no driver

    write(settings)

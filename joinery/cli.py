"""The console script cassandra-joinery."""

from __future__ import annotations

from pathlib import Path

import click

from cdc_common.program.cli import Program
from joinery.settings import Settings

main = Program(
    "cassandra-joinery",
    Settings,
    tables=("registry", "joinery", "log"),
    help="Joins change topics without a time window. So far it checks and plans joins, and does not run them.",
)

_FILE = click.Argument(["file"], metavar="[FILE]", type=click.Path(path_type=Path), required=False)


@main.program_command("check", params=[_FILE])
def check(settings: Settings, file: Path | None) -> None:
    """Checks the joins of FILE.

    It asks the registry whether each join fits the newest schemas of its inputs. It reads and writes no messages.

    Example: cassandra-joinery check joins.toml
    """
    from joinery.commands.planned import print_check  # noqa: PLC0415 - --help and config need no client of the registry

    print_check(settings, file or settings.joinery.file)


@main.program_command("plan", params=[_FILE])
def plan(settings: Settings, file: Path | None) -> None:
    """Shows the joined rows of each join of FILE.

    It also shows what the inputs need. It asks the registry for their newest schemas. It reads and writes no messages.

    Example: cassandra-joinery plan joins.toml
    """
    from joinery.commands.planned import print_plan  # noqa: PLC0415 - as above

    print_plan(settings, file or settings.joinery.file)

"""Shows what a statement finds in the tables that `make stack` loads into a file of DuckDB."""

from __future__ import annotations

import time

import click
import duckdb

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.cli import reported_errors
from dev.local_stack.servers.addresses import read_servers, tables_file

WAIT_SECONDS = 30.0  # for a load to end
PAUSE_SECONDS = 0.05


@click.command()
@click.argument("statement")
def main(statement: str) -> None:
    """Show what a statement finds in the tables of the running stack (make stack)."""
    with reported_errors():
        read_servers()
        with _opened() as connection:
            try:
                found = connection.sql(statement)
            except duckdb.Error as error:
                problem = f"DuckDB refuses the statement: {error}."
                fix = "Correct it. A table is there once its first row was written."
                raise CdcError(Code.CONFIG_INVALID, problem, fix) from None
            if found is not None:
                click.echo(str(found))


def _opened() -> duckdb.DuckDBPyConnection:
    """The file, once no load has it open."""
    file, deadline = tables_file(), time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return duckdb.connect(str(file), read_only=True)
        except duckdb.IOException as error:
            if time.monotonic() >= deadline:
                raise CdcError(
                    Code.SERVER_FAILED, f"{file} cannot be opened: {error}.", "Close other programs that have it open."
                ) from None
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()

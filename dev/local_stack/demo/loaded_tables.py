"""The demo's tables in a file of DuckDB: `cassandra-warehouse` loads them while the stack runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dev.local_stack.demo import shop
from dev.local_stack.servers import programs
from dev.local_stack.servers.addresses import tables_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.programs import Program

_SUFFIXES = ("", ".wal")


def query_line(statement: str) -> str:
    """The command that shows what a statement finds."""
    return f'.local/venv/bin/python -m dev.local_stack.clients.query "{statement}"'


@contextmanager
def loaded_tables(servers: Servers, report: Callable[[str], None]) -> Iterator[Program]:
    """The program that loads them, once it runs. The file of a stack before is removed: its topics are gone."""
    file = tables_file()
    for suffix in _SUFFIXES:
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    settings = {
        **servers.settings(),
        "warehouse.target": f"duckdb:///{file}",
        "warehouse.topics": rf"{servers.topic_prefix}\.{shop.KEYSPACE}\..*",
    }
    program = programs.warehouse(file.with_suffix(".warehouse"), settings, report=report)
    try:
        program.start()
        yield program
    finally:
        program.stop()

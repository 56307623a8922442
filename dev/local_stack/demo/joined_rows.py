"""The demo's orders joined with their customers: `cassandra-joinery` joins them while the stack runs."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dev.local_stack.demo import shop
from dev.local_stack.servers import programs
from dev.local_stack.servers.addresses import servers_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.programs import Program

SOURCE = "orders_of_customers"
EXAMPLE = "INSERT INTO shop.customers (name, email) VALUES ('ada', 'ada@example.org')"
_FILE = """[[join]]
name = "{source}"
target = {{ namespace = "{space}", source = "{source}" }}
on = ["o.customer = c.name"]
select = ["o.status", "o.total", "c.email"]
input.o = {{ namespace = "{space}", source = "orders" }}
input.c = {{ namespace = "{space}", source = "customers", optional = true }}
"""


def joins_file(folder: Path, topic_prefix: str) -> Path:
    """Write the file of the join."""
    file = folder / "joins.toml"
    file.write_text(_FILE.format(source=SOURCE, space=f"{topic_prefix}.{shop.KEYSPACE}"))
    return file


@contextmanager
def joined_rows(servers: Servers, report: Callable[[str], None]) -> Iterator[Program]:
    """The program that joins them, once it runs. States of a stack before are removed: its topics are gone."""
    folder = servers_file().with_suffix(".joinery")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = programs.joinery(folder, joins_file(folder, servers.topic_prefix), servers.settings(), report=report)
    try:
        program.start()
        yield program
    finally:
        program.stop()

"""The pages of the jobs that read change topics: their files, their commands, and what comes out of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.programs import READY_LINE
from dev.verify.containers.shop import wait_for_change
from dev.verify.hosts.reader import CHECKOUT, PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dev.verify.hosts.guide_page import Item
    from dev.verify.hosts.reader import Reader
    from dev.verify.hosts.servers import Servers

LAKE = "/mnt/lake"
SALT = "orders.salt"
WAIT_SECONDS = 300.0
USER = "Ada"
READ_WAREHOUSE = (
    "import duckdb; print(duckdb.connect('/var/lib/cassandra-warehouse/warehouse.duckdb', read_only=True)"
    ".execute('SELECT note FROM shop.orders').fetchall())"
)
FILES = {
    "[[transformer]]*": "transformers.toml",
    "[[join]]*": "joins.toml",
    'join = "orders-of-users"*': "case.toml",
}
"""The beginning of a file that a page shows, and its name there."""


class JobPages:
    """Each job runs while its page is read, as its unit, and is stopped at the end."""

    def __init__(self, servers: Servers, reader: Reader) -> None:
        self._servers = servers
        self._node = servers.node
        self._reader = reader
        reader.do_otherwise(
            {
                **dict.fromkeys(FILES, self._write_file),
                '[archive]\ntopics = ["cdc*': self._write_table,
                "[warehouse]*": self._write_table,
                **{f"cassandra-{job} run*": self._start for job in ("transformer", "archive", "warehouse", "joinery")},
            }
        )

    def read(self) -> None:
        """Read three of them, with a table and a row that the files of all pages fit."""
        self._servers.insert_order_of(USER)
        for topic in ("cdc.shop.users", "cdc.shop.orders"):
            wait_for_change(self._node, topic, USER)
        self._read("archive", "archive.md", ("Archive",), self._archived)
        self._read("warehouse", "warehouse.md", ("Warehouse",), self._loaded)
        self._read("joinery", "joins.md", ("The file", "Try it on a few rows"), self._joined)

    def read_transformers(self) -> None:
        """Read the page whose file masks personal columns: of those that the registry's page has marked."""
        self._read("transformer", "transformers.md", ("The file",), self._transformed)

    def _read(self, job: str, page: str, files: Sequence[str], wait: Callable[[], None]) -> None:
        """Read a page: the files first that its commands name, then the commands that start it, then the rest."""
        self._reader.read(page, *files, only_files=True)
        self._reader.read(page, self._reader.first_heading(page))
        wait()
        self._reader.read(page)
        self._node.run(f"systemctl stop cassandra-{job}")

    def _write_file(self, item: Item) -> None:
        """Write it where the page's commands find it, and where the job's unit does."""
        [name] = [name for beginning, name in FILES.items() if item.text.startswith(beginning.removesuffix("*"))]
        for folder in (CHECKOUT, "/etc"):
            self._node.write(f"{folder}/{name}", item.text)
            if "salt_file" in item.text:
                self._node.write(f"{folder}/{SALT}", "a salt of the test")

    def _write_table(self, item: Item) -> None:
        """Add it to /etc/cdc.toml. DuckDB has no password, and wants one process, as the page says below."""
        text = self._reader.own(item.text)
        self._node.run(f"mkdir -p {LAKE} && chown spark {LAKE}")
        if "password_file" in text:
            text = re.sub(r"^password_file.*\n", "", text, flags=re.MULTILINE) + 'spark_master = "local[1]"\n'
        self._node.write("/root/more.toml", text)
        self._node.run("cat /root/more.toml >> /etc/cdc.toml")

    def _start(self, item: Item) -> None:
        """Start the unit, whose ExecStart is the same command with the files that it has by default."""
        unit, command = item.text.split()[:2]
        executed = re.findall(r"argv\[\]=([^;]*) ;", self._node.show(unit, "ExecStart"))
        assert executed == [f"{PROGRAMS}/{unit} {command}"], executed
        self._node.start_unit(unit, lambda: READY_LINE in self._node.journal(unit))

    def _transformed(self) -> None:
        wait_for_change(self._node, "analysts.shop.orders", USER)

    def _joined(self) -> None:
        wait_for_change(self._node, "cdc.shop.orders_of_users", USER)

    def _archived(self) -> None:
        self._wait_for(f"find {LAKE} -name '*.parquet'", "orders")

    def _loaded(self) -> None:
        self._wait_for(f'{PROGRAMS}/python -c "{READ_WAREHOUSE}"', USER)

    def _wait_for(self, command: str, text: str) -> None:
        wait_until(lambda: text in self._node.try_run(command).stdout, f"{text!r} from {command}", WAIT_SECONDS)

"""`make verify WHAT=archive`: changes of all CQL types, whose schema changes, archived and read by other programs.

DuckDB, PyIceberg and Spark SQL must read of both layouts what a plain fold of the topic has, row by row and bit by bit;
with TRINO=1 Trino, too, of the Iceberg tables.
The exit status is 1 if anything differs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.program.cli import reported_errors
from cdc_common.settings import RegistrySettings
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.kafka import KafkaBroker
from dev.verify.archive.archived import archive
from dev.verify.archive.compare import differences
from dev.verify.archive.fold import fold, read
from dev.verify.archive.judges import DuckDb, PyIceberg, SparkRead, Written, read_by_spark
from dev.verify.archive.load import CHANGES, TOPIC, messages, schema_of, send
from dev.verify.archive.trino_judge import TrinoReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.verify.archive.archived import Archived
    from dev.verify.archive.fold import Folded
    from dev.verify.archive.judges import Judge

T = TypeVar("T")
PARTITIONS = 10  # two shares
CHUNK = 20_000  # offsets that are compared at a time
SHOWN = 20
LAYOUTS = ("iceberg", "hive")
VERSIONS = (1, 2)
TABLES = {1: "cdc_shop.wide", 2: "cdc_shop.wide__v2"}
DEFECTS = {
    "value": "A value of the fold is another one.",
    "row": "The fold leaves a row out.",
}


class Check:
    """Servers, a topic and its archives."""

    def __init__(self, folder: Path, kafka: KafkaBroker, registry: str) -> None:
        self._folder = folder
        self._bootstrap = kafka.bootstrap_servers
        self._registry = registry
        with RegistryClient(RegistrySettings(url=registry)) as client:
            # Subjects of their own, because the registry would refuse the last schema beside the others.
            self._ids = [client.register(f"{TOPIC}-{place}-value", schema_of(place)) for place in range(len(CHANGES))]

    def load(self, count: int, seed: int) -> dict[int, int]:
        """Send so many messages. The offset after the last committed message of each partition."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})  # it has to live until its answers have come
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
        send(self._bootstrap, TOPIC, messages(self._ids, count, seed, time.time_ns() // 1_000_000))
        ends: dict[int, int] = {}
        for partition in range(PARTITIONS):
            for offset, _ in read(self._bootstrap, TOPIC, partition):
                ends[partition] = offset + 1
        return ends

    def archive(self, ends: dict[int, int], count: int) -> dict[str, Archived]:
        """Archive the topic in both layouts."""
        return {
            layout: archive(self._bootstrap, self._registry, self._folder, layout, ends, self._ids, count)
            for layout in LAYOUTS
        }

    def judges(self, archived: dict[str, Archived]) -> list[Judge]:
        """Return the judges. Spark reads everything now."""
        reads = {
            (layout, version): SparkRead(
                TABLES[version] if layout == "iceberg" else "",
                archived[layout].files[version],
                self._folder / f"spark-{layout}-{version}",
            )
            for layout in LAYOUTS
            for version in VERSIONS
        }
        database = archived["iceberg"].database
        read_by_spark(list(reads.values()), database, self._folder)
        return [
            PyIceberg(database, TABLES),
            *(DuckDb(layout, archived[layout].files) for layout in LAYOUTS),
            *(
                Written("Spark SQL", layout, {version: reads[layout, version].target for version in VERSIONS})
                for layout in LAYOUTS
            ),
        ]

    def trino(self, archived: dict[str, Archived]) -> list[Judge]:
        """Return the judge Trino, which reads everything now."""
        with TrinoReader(self._folder) as trino:
            return [Written("Trino", "iceberg", trino.read(archived["iceberg"].database, TABLES))]

    def fold(self) -> list[Folded]:
        return list(fold(self._bootstrap, TOPIC, PARTITIONS, self._ids, CHUNK))


@click.command()
@click.option("--messages", "count", default=100_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--defect", type=click.Choice(list(DEFECTS)), help="What must be found.")
@click.option("--trino", "has_trino", is_flag=True, help="Trino, too: 800 MB to download, and a system's Java 25.")
def main(count: int, seed: int, defect: str | None, *, has_trino: bool) -> None:
    """Archive messages, and compare what judges read with a fold."""
    with reported_errors(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="verify-archive-")))
        kafka = stack.enter_context(KafkaBroker())
        registry = programs.schematizer(folder / "registry", free_ports(1)[0])
        registry.start()
        stack.callback(registry.stop)
        check = Check(folder, kafka, f"http://{LOCALHOST}:{registry.settings['schematizer.port']}")
        ends = timed("sent", lambda: check.load(count, seed))
        archived = timed("archived", lambda: check.archive(ends, count))
        judges = timed("read by Spark", lambda: check.judges(archived))
        judges += timed("read by Trino", lambda: check.trino(archived)) if has_trino else []
        problems = [problem for one in archived.values() for problem in one.problems]
        problems += timed("compared", lambda: compare(check, judges, defect))
    for problem in problems[:SHOWN]:
        click.echo(f"DIFFERENCE {problem}")
    click.echo(f"{len(problems):,} differences")
    sys.exit(bool(problems))


def compare(check: Check, judges: list[Judge], defect: str | None) -> list[str]:
    problems: list[str] = []
    rows = 0
    for folded in check.fold():
        wanted = with_defect(folded.rows, defect) if rows == 0 else folded.rows
        rows += len(folded.rows)
        for judge in judges:
            found, name = judge.read(folded.kind), f"{judge.name} {folded.kind}"
            problems += differences(name, wanted, found, forgets_null_lists=judge.forgets_null_lists)
    click.echo(f"{rows:,} rows by {len(judges)} judges: {', '.join(judge.name for judge in judges)}")
    return problems


def with_defect(rows: pa.Table, defect: str | None) -> pa.Table:
    """Rows of a fold that is wrong on purpose."""
    if defect == "row":
        return rows.slice(1)
    if defect == "value":
        numbers = rows.column("row_sequence")
        place = rows.schema.get_field_index("row_sequence")
        return rows.set_column(place, "row_sequence", pc.add(numbers, pc.equal(numbers, numbers[0]).cast(pa.int64())))
    return rows


def timed(what: str, work: Callable[[], T]) -> T:
    """The answer of some work, whose time is printed."""
    started = time.monotonic()
    found = work()
    click.echo(f"{what} in {time.monotonic() - started:.0f} s")
    return found


if __name__ == "__main__":
    main()

"""Quarantined mutations that are replayed or discarded; the node and Kafka are fakes."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from cassandra_storage.formats.primitives.vint import write_int
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.versions import VERSION_40
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import raw
from publisher.commands import quarantine as quarantine_commands
from publisher.commands.quarantine import discard_mutation, replay_mutations
from publisher.mutations.messages import Origin
from publisher.mutations.quarantine import SentGap, open_quarantine
from publisher.settings import PublisherSettings, Settings
from publisher.tables.node_schema import NodeSchema
from publisher.tables.selection import ALL_TABLES, Selection
from publisher.topics.raw_topics import RawTopic
from tests.support.materializer.raw_builder import TableWriter, int_bytes, partition_update
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from publisher.inflight import PendingMessages
    from publisher.tables.published_table import PublishedTable

ORIGIN = Origin(bytes(range(16)), 7, "CommitLog-7-7.log", VERSION_40, 1234)
AT = 1_700_000_000_000  # ms
FILLER = ("cdc_filler", "filler")


class Commands:
    """The commands beside a node with the table ks.a; `sent`: by topic."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = SchemaRows()
        self.table_id = self.rows.create("ks", "a", cdc=True)
        self.settings = Settings(publisher=PublisherSettings(state_directory=folder))
        self.file = folder / "schema.json"
        self.selection = ALL_TABLES
        self.quarantine = open_quarantine(self.settings.publisher)
        self.sent: list[tuple[str, raw.RawMessage]] = []
        self.lines: list[str] = []
        monkeypatch.setattr(quarantine_commands, "connect_beside_publisher", self.connect)

    @contextmanager
    def connect(self, _settings: object) -> Iterator[Any]:
        yield SimpleNamespace(schema=self.schema(self.file), raw_topics=self, sender=self)

    def schema(self, file: Path) -> NodeSchema:
        schema = NodeSchema(file, self.rows.run_query, FILLER, self.selection)
        schema.load()
        schema.refresh()
        return schema

    def batch(self, schema: NodeSchema, *table_ids: bytes) -> bytes:
        """A mutation with a row of each table."""
        row = Row((), {}, LivenessInfo(1))
        updates = [
            partition_update(int_bytes(1), "row", row, TableWriter(schema.tables[table_id])) for table_id in table_ids
        ]
        return write_int(len(updates)) + b"".join(updates)

    # RawTopics and Sender

    def open(self, table: PublishedTable) -> RawTopic:
        return RawTopic(table, f"raw.{table.table.qualified_name}", 1, 1)

    def send(self, topic: str, _key: bytes, value: bytes, pending: PendingMessages) -> bool:
        self.sent.append((topic, raw.decode(value)))
        pending.acknowledge()
        return True

    def flush(self, _seconds: float) -> None: ...

    def poll(self, _seconds: float) -> None: ...


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(tmp_path, monkeypatch)


def test_a_table_that_only_another_publisher_knows_is_decoded_and_nothing_else_is_taken(
    commands: Commands, tmp_path: Path
) -> None:
    """The other node was truncated at another place of its log: that is no truncation of this one."""
    (tmp_path / "other").mkdir()
    gone = commands.rows.create("ks", "gone", cdc=True)
    others = commands.schema(tmp_path / "other" / "schema.json")
    commands.rows.truncate(commands.table_id, 4, 10, AT)
    others.refresh()
    mutation = commands.batch(others, gone, commands.table_id)
    commands.rows.drop("ks", "gone")
    commands.rows.truncate(commands.table_id, 6, 20, AT)
    own = commands.schema(commands.file)
    commands.quarantine.store(ORIGIN, mutation, "unknown table", [SentGap(commands.table_id, int_bytes(1))])
    before = commands.file.read_bytes()
    with pytest.raises(CdcError, match="1 mutations cannot be decoded") as caught:
        replay_mutations(commands.settings, None, commands.lines.append)
    assert caught.value.code is Code.QUARANTINED
    assert f"WITH ID = {UUID(bytes=gone)} AND cdc = true" in caught.value.fix
    assert commands.lines[-1] == "0 of 1 mutations sent"
    replay_mutations(commands.settings, tmp_path / "other" / "schema.json", commands.lines.append)
    assert commands.lines[-1] == "1 of 1 mutations sent"
    assert [(topic, message.kind) for topic, message in commands.sent] == [
        ("raw.ks.gone", "row"),
        ("raw.ks.a", "row"),
        ("raw.ks.a", "gap"),
    ]
    assert commands.file.read_bytes() == before
    assert own.row_ends.pending == commands.schema(commands.file).row_ends.pending
    assert len(commands.quarantine) == 0


def test_what_is_no_schema_file_is_refused(commands: Commands, tmp_path: Path) -> None:
    for name, content in {"no.json": "", "other.json": '{"format_version": 1}', "position": '{"tables": []}'}.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(CdcError, match=name) as caught:
            replay_mutations(commands.settings, tmp_path / name, commands.lines.append)
        assert caught.value.code is Code.CONFIG_INVALID
    with pytest.raises(CdcError, match=r"missing\.json"):
        replay_mutations(commands.settings, tmp_path / "missing.json", commands.lines.append)


@pytest.mark.parametrize("why", ["excluded", "switched off", "dropped"])
def test_the_gap_of_a_table_that_is_not_published_now_is_withdrawn_too(commands: Commands, why: str) -> None:
    """It would be incomplete forever once it is published again. The topic of a dropped table is not made again."""
    other = commands.rows.create("ks", "b", cdc=True)
    commands.schema(commands.file)
    gaps = [SentGap(table_id, int_bytes(1)) for table_id in (commands.table_id, other)]
    commands.quarantine.store(ORIGIN, b"\0", "damaged", gaps)
    if why == "excluded":
        commands.selection = Selection(exclude=("ks.b",))
    elif why == "switched off":
        commands.rows.alter("ks", "b", cdc=False)
    else:
        commands.rows.drop("ks", "b")
    discard_mutation(commands.settings, ORIGIN.place, commands.lines.append)
    withdrawn = {topic for topic, message in commands.sent if message.kind == "gap" and not message.file}
    assert withdrawn == ({"raw.ks.a"} if why == "dropped" else {"raw.ks.a", "raw.ks.b"})
    assert len(commands.quarantine) == 0

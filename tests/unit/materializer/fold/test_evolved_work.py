"""A worker's work on altered tables: raw messages in, decoded messages of the change topics out."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pytest
from fastavro import parse_schema, schemaless_reader

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from cdc_common.messages.tables import message_key, to_json
from materializer.fold.chunk_fold import ChunkFold
from materializer.planning.change_topics import ChangeTopics
from materializer.planning.plan import TableSchema, TopicPlan
from materializer.processing.fold_report import fold_part
from materializer.processing.processor import table_catalog
from materializer.records import RawPartition
from materializer.settings import Settings
from materializer.worker.batch_plan import BatchPlan
from stream_runtime.exactly_once.report import NOTHING_DONE
from tests.support.materializer.altered_table import HEARTBEAT, heartbeats_named, of_table, row, static, without_b
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import TABLE
from tests.support.stream_runtime.sent import messages_of

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata
    from materializer.records import RawRecord

RAW, TOPIC = "cdc.raw.shop.orders", "cdc.shop.orders"
PARTITION = RawPartition(RAW, 0)


class Published(NamedTuple):
    topic: str
    key: dict[str, Any]
    op: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Job:
    """A driver and a worker for one raw partition; `tables` are what the tables topic holds by now."""

    def __init__(self, forms: TypeForms = EXACT) -> None:
        self._forms = forms
        self.tables: list[TableMetadata] = [TABLE]
        self._registry = MemoryRegistry()
        self._change_topics = ChangeTopics("cdc", self._registry, lambda _topic: 1)
        self._state = MemoryState()
        self.report = NOTHING_DONE

    def batch(self, *records: RawRecord) -> list[Published]:
        keys = [message_key(table) for table in self.tables]
        schemas = tuple(
            TableSchema(key[:16], key[16:], to_json(table)) for key, table in zip(keys, self.tables, strict=True)
        )
        settings = Settings()
        found = self._change_topics.find_or_create(schemas, self._forms)
        topic_plan = TopicPlan(1, schemas, found, forms=self._forms)
        plan = BatchPlan({RAW: topic_plan}, settings.kafka, settings.materializer)
        processor = plan.processor(RAW)
        result = processor.fold(self._state, heartbeats_named(records, table_catalog(schemas)))
        self._state.apply(result.writes)
        messages = messages_of(processor.messages(PARTITION, result))
        self.report = processor.add_to(NOTHING_DONE, 0, len(records), result)
        return [
            self._published(message.topic, message.key, message.value)
            for message in messages
            if message.value is not None
        ]

    def _published(self, topic: str, key: bytes, value: bytes) -> Published:
        decoded = self._decode(value)
        images = [decoded[which] and {k: v for k, v in decoded[which].items() if v} for which in ("before", "after")]
        return Published(topic, self._decode(key), decoded["op"], *images)

    def _decode(self, data: bytes) -> dict[str, Any]:
        schema_id = int.from_bytes(data[1:5], "big")
        text = next(text for (_, text), known in self._registry.schemas.items() if known == schema_id)
        decoded = schemaless_reader(BytesIO(data[5:]), parse_schema(json.loads(text)), None)
        assert isinstance(decoded, dict)
        return decoded


def test_a_dropped_column_is_emitted_under_the_schema_that_has_it() -> None:
    job = Job()
    job.batch(row(1, 1, 1, a="a", b="b"))
    job.tables.append(without_b(5))
    [change] = job.batch(HEARTBEAT)
    key = {"k": 1, "c": 1}
    assert change == Published(TOPIC, key, "u", {**key, "a": "a", "b": "b"}, {**key, "a": "a"})
    [change] = job.batch(row(9, 1, 1, a="z"))
    assert change.after == {**key, "a": "z"}


@pytest.mark.parametrize("is_native", [True, False])
def test_values_that_a_message_lacks_are_counted(monkeypatch: pytest.MonkeyPatch, *, is_native: bool) -> None:
    """Those of `after`: a later change of the row counts them again only if they are still there."""
    monkeypatch.setattr(ChunkFold, "_may_be_native", is_native)
    job, no_text = Job(), "\udcff"
    [change] = job.batch(row(1, 1, 1, a=no_text, b=no_text))
    assert (change.op, change.after) == ("c", {"k": 1, "c": 1})
    assert fold_part(job.report).null_values == Counter(unreadable=2)
    job.batch(row(2, 1, 1, a="a", b=no_text))
    assert fold_part(job.report).null_values == Counter(unreadable=1)
    job.batch(row(3, 1, 1, b="b"))
    assert fold_part(job.report).null_values == Counter()


def test_a_driver_that_restarts_finds_the_schema_of_the_rows() -> None:
    job = Job()
    job.batch(row(1, 1, 1, a="a", b="b"))
    job.tables.append(without_b(5))
    job._change_topics = ChangeTopics("cdc", job._registry, lambda _topic: 1)
    assert [change.op for change in job.batch(HEARTBEAT)] == ["u"]


def test_a_renamed_key_moves_every_row_to_the_next_version_of_the_topic() -> None:
    job = Job()
    job.batch(static(1, 1, "st"), row(2, 1, 1, a="a"))
    job.tables.append(replace(TABLE, clustering=(replace(TABLE.clustering[0], name="d"),)))
    old, new = {"k": 1, "c": 1}, {"k": 1, "d": 1}
    assert job.batch(HEARTBEAT) == [
        Published(TOPIC, old, "d", {**old, "st": "st", "a": "a"}, None),
        Published(f"{TOPIC}-v2", new, "r", None, {**new, "st": "st", "a": "a"}),
    ]


def test_partitions_with_only_static_columns_are_left_out_by_default_also_when_rows_move() -> None:
    job = Job(DEFAULT_FORMS)
    assert job.batch(static(1, 1, "st"), static(1, 2, "alone")) == []
    old, new = {"k": 1, "c": 1}, {"k": 1, "d": 1}
    assert job.batch(row(2, 1, 1, a="a")) == [Published(TOPIC, old, "c", None, {**old, "st": "st", "a": "a"})]
    job.tables.append(replace(TABLE, clustering=(replace(TABLE.clustering[0], name="d"),)))
    assert job.batch(HEARTBEAT) == [
        Published(TOPIC, old, "d", {**old, "st": "st", "a": "a"}, None),
        Published(f"{TOPIC}-v2", new, "r", None, {**new, "st": "st", "a": "a"}),
    ]


def test_included_they_are_rows_with_null() -> None:
    job = Job(DEFAULT_FORMS._replace(static_rows="include"))
    shown = {"k": 1, "st": "st"}  # and null in the others
    assert job.batch(static(1, 1, "st")) == [Published(TOPIC, {"k": 1, "c": None}, "c", None, shown)]


def test_a_recreated_table_with_another_key_continues_in_a_topic_of_its_own() -> None:
    job = Job()
    job.batch(row(1, 1, 1, a="a"))
    recreated = replace(TABLE, id=UUID(int=8), clustering=(replace(TABLE.clustering[0], name="d"),))
    job.tables.append(recreated)
    changes = job.batch(of_table(row(2, 1, 1, a="b"), recreated))
    assert [(change.topic, change.op) for change in changes] == [(TOPIC, "d"), (f"{TOPIC}-v2", "c")]
    assert job.batch(row(3, 1, 1, a="late")) == []

"""A raw partition whose rows move to another change topic, and the task that moves them, run as Spark's workers do.

The fold is the table's own. The plan names the change topic, without a registry: which one, the setup says.
"""

from __future__ import annotations

from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fastavro import schemaless_reader

from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages import wire
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import key_schema, value_schema
from cdc_common.messages.tables import canonical, digest, to_json
from cdc_common.settings import KafkaSettings
from dev.local_stack.clients.change import Change
from dev.local_stack.clients.history import chain_problems, frozen
from materializer.planning.plan import ChangeTopic, TableSchema, TopicPlan
from materializer.records import RawPartition, RawRecord
from materializer.settings import MaterializerSettings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.open_partitions import OpenPartitions
from tests.support.materializer.protocol_run import read_topic
from tests.support.materializer.raw_builder import TABLE, int_bytes, raw_record

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from cdc_common.messages.raw import Kind

KEYS, ROWS = range(3), range(20)
DELETED = 5  # the clustering of the row that each Cassandra partition loses before the move
CHANGE_PARTITIONS = 3
CHUNK = 20
MOST_CHANGES = 6  # of a part of the move
SNAPSHOT_EVERY = 4
KEPT = 3


class Written(NamedTuple):
    """A write of the row (key, clustering), or of the static row; None deletes the row."""

    key: int
    clustering: int | None
    text: str | None


BEFORE = (
    *(Written(key, clustering, "first") for key in KEYS for clustering in ROWS),
    *(Written(key, None, f"static {key}") for key in KEYS),
    *(Written(key, DELETED, None) for key in KEYS),
)
AFTER = (Written(0, 0, "second"), Written(1, len(ROWS), "new"), Written(2, 1, None))
LATER = (Written(0, 1, "third"), Written(2, 1, "back"))
Rows = dict[tuple[int, int], tuple[str, str]]
"""The texts of the regular column and of the static one, by key."""


class MoveSetup(NamedTuple):
    """The servers and folders of a run. `has_moved`: the plan names the next topic."""

    bootstrap: str
    prefix: str
    folder: str
    has_moved: bool = False

    @property
    def raw(self) -> RawPartition:
        return RawPartition(f"{self.prefix}.raw.shop.orders", 0)

    @property
    def topics(self) -> tuple[str, str]:
        """The first and the next one."""
        return f"{self.prefix}.shop.orders", f"pii-{self.prefix}.shop.orders-v2"

    @property
    def state(self) -> Path:
        return Path(self.folder) / "state"

    def make(self) -> None:
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        new = [NewTopic(self.raw.topic, 1, 1), *(NewTopic(topic, CHANGE_PARTITIONS, 1) for topic in self.topics)]
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics(new).values():
            future.result()

    def send(self, *writes: Written) -> None:
        """Send writes to the raw partition. Each is newer than all before."""
        first = 1 + sum(1 for _ in read_topic(self.bootstrap, self.raw.topic, 1))
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number, write in enumerate(writes, first):
            record = _raw(write, number)
            producer.produce(self.raw.topic, record.value, record.key, 0)
        producer.flush()

    def plan(self) -> BatchPlan:
        schema = TableSchema(TABLE.id.bytes, digest(canonical(TABLE)), to_json(TABLE))
        topic = ChangeTopic(self.topics[self.has_moved], CHANGE_PARTITIONS, 1, 2)
        settings = MaterializerSettings(
            group_id=self.prefix,
            checkpoint_location=str(Path(self.folder) / "checkpoint"),
            state_directory=self.state,
            chunk_max_messages=CHUNK,
            chunk_max_changes=MOST_CHANGES,
            snapshot_every_versions=SNAPSHOT_EVERY,
            changelog_retention_versions=KEPT,
            changelog_retention_seconds=0,
        )
        kafka = KafkaSettings(bootstrap_servers=self.bootstrap, topic_prefix=self.prefix)
        return BatchPlan({self.raw.topic: TopicPlan(1, (schema,), (topic,), forms=EXACT)}, kafka, settings)

    def run(self, until: int | None = None, **_settings: object) -> None:
        """Run in this process, up to an offset. It does one part at a time, like a worker whose time is over."""
        records = [
            RawRecord(message.key() or b"", message.value() or b"", message.offset() or 0, message.timestamp()[1])
            for message in read_topic(self.bootstrap, self.raw.topic, 1)
        ][:until]
        plan, open_partitions = self.plan(), OpenPartitions()
        try:
            for start in range(0, len(records), CHUNK):
                left = records[start : start + CHUNK]
                while left:
                    report = open_partitions.process(plan, self.raw, left, 0.0)
                    left = left[len(left) - report.left :]
        finally:
            open_partitions.close_all()

    def check(self, *writes: Written) -> None:
        """Check the topics after these writes and a move after BEFORE: all rows have left the first topic, each once,
        and the next topic shows them; each key's changes are one chain over both.
        """
        found = [list(self._changes(topic)) for topic in self.topics]
        shown = [_latest(changes) for changes in found]
        assert shown[0] == {}, f"{len(shown[0])} rows are left"
        assert shown[1] == expected(writes), "the next topic shows other rows"
        keys: dict[Hashable, list[Change]] = defaultdict(list)
        for change in found[0] + found[1]:
            keys[frozen(change.key)].append(change)
        problems = [
            problem for changes in keys.values() for problem in chain_problems(sorted(changes, key=_row_sequence))
        ]
        assert not problems, problems
        for changes, other, op in zip(found, reversed(self.topics), "dr", strict=True):
            moved = [change for change in changes if (change.value or {})["source"]["cause"] == "moved"]
            rows = {(change.key["k"], change.key["c"]) for change in moved}
            assert (len(moved), rows) == (len(rows), set(expected(BEFORE))), f"{len(moved)} rows moved: {op}"
            assert {((change.value or {})["op"], (change.value or {})["source"]["file"]) for change in moved} == {
                (op, other)
            }

    def _changes(self, topic: str) -> Iterable[Change]:
        """The committed ones. AssertionError for a deletion without a tombstone, or a number that does not rise."""
        key_avro, value_avro = key_schema(TABLE, self.prefix, EXACT), value_schema(TABLE, self.prefix, EXACT)
        ended: dict[bytes, bool] = {}
        numbers: dict[bytes, int] = {}
        for message in read_topic(self.bootstrap, topic, CHANGE_PARTITIONS):
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            if value is None:
                assert ended.pop(key, False), "a tombstone without a deletion"
                continue
            assert not ended.get(key), "a deletion without a tombstone"
            decoded = _decoded(value_avro, bytes(value))
            ended[key] = decoded["op"] == "d"
            assert decoded["source"]["row_sequence"] > numbers.get(key, 0), "a change that came before"
            numbers[key] = decoded["source"]["row_sequence"]
            place = message.partition() or 0, message.offset() or 0
            yield Change("shop", "orders", *place, _decoded(key_avro, key), decoded, 0.0)
        assert not any(ended.values()), "a deletion without a tombstone"


def expected(writes: Iterable[Written]) -> Rows:
    """The rows that the table has after these writes, without a look at the code."""
    statics: dict[int, str] = {}
    rows: dict[tuple[int, int], str] = {}
    for key, clustering, text in writes:
        if clustering is None:
            statics[key] = text or ""
        elif text is None:
            rows.pop((key, clustering), None)
        else:
            rows[key, clustering] = text
    return {(key, clustering): (text, statics[key]) for (key, clustering), text in rows.items()}


def _raw(write: Written, number: int) -> RawRecord:
    """`number`: its write timestamp, and its position in the log."""
    kind: Kind = "static" if write.clustering is None else "row"
    if write.clustering is None:
        row = Row((), {"st": Cell(number, (write.text or "").encode())}, NO_LIVENESS)
    elif write.text is None:
        row = Row((int_bytes(write.clustering),), {}, NO_LIVENESS, RowDeletion(DeletionTime(number, 1)))
    else:
        row = Row((int_bytes(write.clustering),), {"a": Cell(number, write.text.encode())}, LivenessInfo(number))
    return raw_record(int_bytes(write.key), kind, row, offset=number)


def _latest(changes: Iterable[Change]) -> Rows:
    rows: Rows = {}
    for change in changes:
        key, after = (change.key["k"], change.key["c"]), (change.value or {})["after"]
        if after is None:
            del rows[key]
        else:
            rows[key] = after["a"], after["st"]
    return rows


def _decoded(schema: dict[str, Any], data: bytes) -> Any:  # noqa: ANN401 - what the schema says
    return schemaless_reader(BytesIO(data[wire.HEADER_SIZE :]), schema, None)


def _row_sequence(change: Change) -> int:
    number: int = (change.value or {})["source"]["row_sequence"]
    return number

"""Each error stops one table, one mutation, or the publisher: the scopes are those of the error reference."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import uuid4

import pytest

from cassandra_storage.formats.primitives.vint import write_int
from cdc_common.errors.codes import CdcError, Code
from cdc_common.errors.reference import SCOPES
from cdc_common.errors.scopes import Scope
from publisher.log import cdc_raw
from publisher.log.position import Positions
from tests.support.publisher.publisher_beside_fakes import FakeKafka, PublisherBesideFakes
from tests.support.publisher.publisher_without_kafka import HOST
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOPIC, SUBJECT = "cdc.raw.ks.bad", "cdc.raw.ks.bad-value"
DEEP = "frozen<list<" * 101 + "int" + ">>" * 101


def refused(words: str, code: Code = Code.KAFKA_REFUSED) -> CdcError:
    return CdcError(code, words, "A fix.")


class World(NamedTuple):
    """A publisher of ks.good and ks.bad that has published a row of each, unless the case is of a start."""

    it: PublisherBesideFakes

    @property
    def kafka(self) -> FakeKafka:
        return self.it.kafka

    @property
    def rows(self) -> SchemaRows:
        return self.it.rows

    def forget_bad(self) -> None:
        """The table is made again, so that its topic is opened again, and its subject registered."""
        self.rows.drop("ks", "bad")
        self.rows.columns = [row for row in self.rows.columns if row["table_name"] != "bad"]
        self.it.round()
        del self.kafka.topics[TOPIC]
        self.it.publisher._do(self.it.publisher._tables.refresh_partition_counts())
        ids = self.it.publisher._tables._raw_topics._ids._ids
        ids.pop(SUBJECT, None)

    def make_bad(self) -> None:
        self.rows.create("ks", "bad", cdc=True)
        self.it.write("bad", 5)

    def append(self, mutation: bytes) -> None:
        self.it._segments[-1].append(mutation)
        self.it._segments[-1].sync()


def new_table_is_refused(words: str, code: Code = Code.KAFKA_REFUSED) -> Callable[[World], None]:
    def hurt(world: World) -> None:
        world.forget_bad()
        world.kafka.unusable[TOPIC] = refused(words, code)
        world.make_bad()

    return hurt


def registry_refuses(code: Code, words: str) -> Callable[[World], None]:
    def hurt(world: World) -> None:
        world.forget_bad()
        world.it.registry.refused[SUBJECT] = refused(words, code)
        world.make_bad()

    return hurt


def messages_are_refused(words: str) -> Callable[[World], None]:
    def hurt(world: World) -> None:
        world.kafka.refused[TOPIC] = refused(words)
        world.it.write("bad", 5)

    return hurt


def topic_is_found_altered(code: Code, words: str) -> Callable[[World], None]:
    def hurt(world: World) -> None:
        world.kafka.altered[TOPIC] = world.kafka.unusable[TOPIC] = refused(words, code)
        world.it.publisher._do(world.it.publisher._tables.refresh_partition_counts())

    return hurt


def name_is_too_long(world: World) -> None:
    world.rows.create("ks", "t" * 240, cdc=True)
    world.it.write("t" * 240, 1)


def names_collide(world: World) -> None:
    for keyspace, name in (("a_b", "c"), ("a", "b_c")):
        world.rows.create(keyspace, name, cdc=True)
        world.it.write(name, 1, keyspace=keyspace)


def type_is_too_deep(world: World) -> None:
    world.rows.create("ks", "deep", cdc=True)
    world.rows.add_column("ks", "deep", "v", DEEP)


def type_is_too_deep_without_cdc(world: World) -> None:
    world.rows.create("ks", "plain", cdc=False)
    world.rows.add_column("ks", "plain", "v", DEEP)


def key_columns_are_missing(world: World) -> None:
    world.rows.create("ks", "half", cdc=True)
    del world.rows.columns[-1]


def registry_is_slow(world: World) -> None:
    world.forget_bad()
    world.it.registry.pause = 2.5
    world.make_bad()


def schema_is_too_large(world: World) -> None:
    world.kafka.is_schema_too_large = True
    world.kafka.refused["cdc.tables"] = refused("MSG_SIZE_TOO_LARGE")
    world.rows.create("ks", "wide", cdc=True)


def tables_topic_refuses(world: World) -> None:
    world.kafka.refused["cdc.tables"] = refused("TOPIC_AUTHORIZATION_FAILED")
    world.rows.create("ks", "new", cdc=True)


def watermarks_topic_refuses(world: World) -> None:
    world.kafka.refused["cdc.watermarks"] = refused("TOPIC_AUTHORIZATION_FAILED")
    world.it.publisher._housekeeping._watermarks._next = 0.0
    world.it.publisher._housekeeping._status_interval._next = 0.0


def client_is_dead(world: World) -> None:
    world.kafka.fatal = refused("a fatal error")


def mutation_is_damaged(world: World) -> None:
    table_id = world.rows.tables["ks", "bad"]["id"].bytes
    world.append(write_int(1) + table_id + b"\x00\x00\x00\x04" + b"\xff" * 30)


def quarantine_is_full_for_one_table(world: World) -> None:
    world.it.node.quarantine._max_mutations = 0
    mutation_is_damaged(world)


def quarantine_is_full_for_an_unknown_mutation(world: World) -> None:
    world.it.node.quarantine._max_mutations = 0
    world.append(write_int(2) + uuid4().bytes + b"\x00\x00\x00\x04" + b"\xff" * 30)


def table_was_dropped_unseen(world: World) -> None:
    world.append(write_int(1) + uuid4().bytes + b"\x00\x00\x00\x04" + b"\xff" * 30)


def schema_is_late(world: World) -> None:
    table_was_dropped_unseen(world)
    world.it.publisher.publish_new()
    for awaited in world.it.publisher._missing._awaited.values():
        awaited.deadline = inf


def cdc_is_switched_off(world: World) -> None:
    world.rows.alter("ks", "bad", cdc=False)


def table_is_a_super_column_family(world: World) -> None:
    world.rows.create("ks", "old", cdc=True)
    world.rows.alter("ks", "old", flags={"super"})


def segment_disappears(world: World) -> None:
    world.it.write("bad", 5)
    world.it.next_segment()
    cdc_raw.list_cdc_segments(world.it.cdc_raw)[0].delete()


def segment_cannot_be_moved(world: World) -> None:
    world.it.node.disposal._folder = world.it.cdc_raw  # it is there already
    world.it.next_segment()


def segment_is_damaged(world: World) -> None:
    segment = world.it._segments[-1]
    position = segment.append(b"m" * 40)
    segment._content[position - 30] ^= 1
    segment.append(b"m" * 40)
    segment.sync()


class Failing:
    """Answers as before, after it has failed some times."""

    def __init__(self, error: CdcError, answer: Callable[..., Any], times: float = inf) -> None:
        self._error, self._answer, self._left = error, answer, times

    def __call__(self, *arguments: object) -> Any:  # noqa: ANN401 - the answer's
        self._left -= 1
        if self._left >= 0:
            raise self._error
        return self._answer(*arguments)


def query_fails(world: World) -> None:
    schema = world.it.schema
    schema._reader._run_query = Failing(refused("no such table", Code.CASSANDRA_QUERY), schema._reader._run_query)


def node_is_away_for_a_while(world: World) -> None:
    schema = world.it.schema
    schema._reader._run_query = Failing(refused("no answer", Code.CASSANDRA_UNREACHABLE), schema._reader._run_query, 2)


def kafka_is_away_for_a_while(world: World) -> None:
    error, before = refused("no answer", Code.KAFKA_UNREACHABLE), world.kafka.read_partition_counts
    cast("Any", world.kafka).read_partition_counts = Failing(error, before, 2)
    world.it.publisher._do(world.it.publisher._tables.refresh_partition_counts())


def position_file_is_damaged(world: World) -> None:
    (world.it.folder / "position.json").write_text("{")
    Positions.load(world.it.folder / "position.json", HOST)


def tables_topic_is_not_compacted(world: World) -> None:
    world.kafka.unusable["cdc.tables"] = refused("cleanup.policy=delete", Code.TOPIC_SETTINGS)
    world.it.publisher.open()


CASES: dict[str, tuple[Callable[[World], None], Code | None, Scope]] = {
    "a name that is too long": (name_is_too_long, Code.TOPIC_NAME, Scope.TABLE),
    "names that collide": (names_collide, Code.TOPIC_NAMES_COLLIDE, Scope.TABLE),
    "a type that is too deep": (type_is_too_deep, Code.TABLE_NOT_PUBLISHED, Scope.TABLE),
    "a table without key columns": (key_columns_are_missing, Code.TABLE_NOT_PUBLISHED, Scope.TABLE),
    "a policy refuses the topic": (new_table_is_refused("POLICY_VIOLATION"), Code.KAFKA_REFUSED, Scope.TABLE),
    "no right to create the topic": (
        new_table_is_refused("TOPIC_AUTHORIZATION_FAILED"),
        Code.KAFKA_REFUSED,
        Scope.TABLE,
    ),
    "too few brokers for a new topic": (
        new_table_is_refused("INVALID_REPLICATION_FACTOR", Code.KAFKA_UNREACHABLE),
        Code.KAFKA_UNREACHABLE,
        Scope.TABLE,
    ),
    "a topic with the producers' time": (
        new_table_is_refused("CreateTime", Code.TOPIC_SETTINGS),
        Code.TOPIC_SETTINGS,
        Scope.TABLE,
    ),
    "a topic that is altered": (
        topic_is_found_altered(Code.TOPIC_SETTINGS, "compact"),
        Code.TOPIC_SETTINGS,
        Scope.TABLE,
    ),
    "a topic that is deleted": (
        topic_is_found_altered(Code.KAFKA_REFUSED, "UNKNOWN_TOPIC_OR_PART"),
        Code.KAFKA_REFUSED,
        Scope.TABLE,
    ),
    "a right that is taken away": (messages_are_refused("TOPIC_AUTHORIZATION_FAILED"), Code.KAFKA_REFUSED, Scope.TABLE),
    "a message that is too large": (messages_are_refused("MSG_SIZE_TOO_LARGE"), Code.KAFKA_REFUSED, Scope.TABLE),
    "a subject without the right": (registry_refuses(Code.REGISTRY_REFUSED, "403"), Code.REGISTRY_REFUSED, Scope.TABLE),
    "an incompatible subject": (registry_refuses(Code.REGISTRY_REFUSED, "409"), Code.REGISTRY_REFUSED, Scope.TABLE),
    "no registry for a new table": (
        registry_refuses(Code.REGISTRY_UNREACHABLE, "no answer"),
        Code.REGISTRY_UNREACHABLE,
        Scope.TABLE,
    ),
    "a registry that is slow": (registry_is_slow, Code.TABLE_WAITS, Scope.TABLE),
    "a schema that is too large": (schema_is_too_large, Code.MESSAGE_TOO_LARGE, Scope.TABLE),
    "a full quarantine, one table": (quarantine_is_full_for_one_table, Code.QUARANTINE_FULL, Scope.TABLE),
    "a mutation that is damaged": (mutation_is_damaged, Code.QUARANTINED, Scope.MESSAGE),
    "a mutation of a dropped table": (table_was_dropped_unseen, Code.SCHEMA_UNKNOWN, Scope.MESSAGE),
    "a schema that is late": (schema_is_late, Code.SCHEMA_UNKNOWN, Scope.TABLE),
    "cdc off": (cdc_is_switched_off, Code.TABLE_CDC_DISABLED, Scope.NOTHING),
    "a deep type without cdc": (type_is_too_deep_without_cdc, None, Scope.NOTHING),
    "a lost segment": (segment_disappears, Code.SEGMENT_LOST, Scope.NOTHING),
    "a segment that cannot be moved": (segment_cannot_be_moved, Code.SEGMENTS_STUCK, Scope.NOTHING),
    "a node that is away": (node_is_away_for_a_while, Code.CASSANDRA_UNREACHABLE, Scope.WAITS),
    "Kafka is away": (kafka_is_away_for_a_while, Code.KAFKA_UNREACHABLE, Scope.WAITS),
    "the tables topic refuses": (tables_topic_refuses, Code.KAFKA_REFUSED, Scope.PROGRAM),
    "the topic of watermarks refuses": (watermarks_topic_refuses, Code.KAFKA_REFUSED, Scope.PROGRAM),
    "a dead client": (client_is_dead, Code.KAFKA_REFUSED, Scope.PROGRAM),
    "a damaged segment": (segment_is_damaged, Code.SEGMENT_CORRUPT, Scope.PROGRAM),
    "a query that fails": (query_fails, Code.CASSANDRA_QUERY, Scope.PROGRAM),
    "a full quarantine, unknown table": (
        quarantine_is_full_for_an_unknown_mutation,
        Code.QUARANTINE_FULL,
        Scope.PROGRAM,
    ),
    "a damaged position file": (position_file_is_damaged, Code.POSITION_FILE, Scope.PROGRAM),
    "a tables topic that is not compacted": (tables_topic_is_not_compacted, Code.TOPIC_SETTINGS, Scope.START),
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("publisher.topics.table_follower.OPEN_SECONDS", 0.3)
    monkeypatch.setattr("publisher.topics.server_calls.RETRY_SECONDS", 0.01)
    monkeypatch.setattr("publisher.topics.missing_schemas.SCHEMA_WAIT_SECONDS", 0.1)
    monkeypatch.setattr("publisher.mutations.mutation_decoder.RETRY_SECONDS", 0.01)
    monkeypatch.setattr("publisher.tables.half_read.HALF_READ_SECONDS", 0.01)
    monkeypatch.setattr("publisher.upkeep.housekeeping.SAVE_SECONDS", 0.0)
    rows = SchemaRows()
    for name in ("good", "bad"):
        rows.create("ks", name, cdc=True)
    it = PublisherBesideFakes(tmp_path, rows, FakeKafka())
    it.open()
    for name in ("good", "bad"):
        it.write(name, 1)
    it.run(lambda: it.is_sent("good") and it.is_sent("bad"))
    return World(it)


def work_on(world: World, hurt: Callable[[World], None]) -> None:
    """The other table gets a row, and it is published."""
    hurt(world)
    if hurt is not segment_is_damaged:
        world.it.write("good", 2)
    for _ in range(40):
        world.it.round()
    world.it.run(lambda: world.it.is_sent("good"))


@pytest.mark.parametrize("case", CASES)
def test_what_stops(world: World, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    hurt, code, scope = CASES[case]
    assert code is None or scope in SCOPES["publisher"][code]
    publisher = world.it
    if scope in {Scope.PROGRAM, Scope.START}:
        with pytest.raises(CdcError) as caught:
            work_on(world, hurt)
        assert caught.value.code is code
        return
    work_on(world, hurt)
    if scope is Scope.MESSAGE:
        publisher.run(lambda: not publisher.waits())
    logged = [capsys.readouterr().out]

    def is_logged() -> bool:  # the schema is read in a thread
        logged.append(capsys.readouterr().out)
        return code is None or code.text in "".join(logged)

    publisher.run(is_logged)
    waiting = publisher.waits()
    if scope is not Scope.TABLE:
        assert waiting == {}
        return
    assert code is not None
    [(name, found)] = waiting.items()
    assert found == code.text
    assert name != "ks.good"
    [shown] = publisher.waiting.shown()
    assert "Fix: " in shown.text


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 25
    assert {scope for _, _, scope in CASES.values()} >= {Scope.TABLE, Scope.MESSAGE, Scope.WAITS, Scope.PROGRAM}

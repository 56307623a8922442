"""The parts of the model check that need no server: its workload, its writer, its shrinking, the places it names."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from cassandra.cqltypes import DoubleType, Int32Type, UTF8Type, lookup_casstype

from cdc_common.messages import tables
from dev.verify.model.cql_text import cql
from dev.verify.model.generator import Course, Generator
from dev.verify.model.kinds import DOUBLE, INT, TEXT, frozen, list_of, map_of, native, set_of, tuple_of, user, vector_of
from dev.verify.model.mutants import BESIDE_BAD_TABLES, IN_BACKLOGS, IN_PUBLISHER, IN_SNAPSHOT, NAMES, OWN, SKIP
from dev.verify.model.place import Places, TablePartition
from dev.verify.model.shapes import TABLES, clustering_kinds, key_kinds, schema, steady_tables, tables_of
from dev.verify.model.shrink import Phases, complements, smallest
from dev.verify.model.statement import Part, Pause, Resume, SchemaChange, Statement
from dev.verify.model.tables import NUMBER, Clustering, Table
from dev.verify.model.times import LARGEST, LATE_US, SMALLEST
from dev.verify.model.values import EMPTY, NATIVES, UNSET, integer, quoted
from dev.verify.model.writer import Writer
from tests.support.materializer.altered_table import without_b
from tests.support.materializer.mutants import MUTANTS, Mutant
from tests.support.materializer.mutants import seed as put_defect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dev.local_stack.clients.cql import CqlClient, TableColumns
    from dev.verify.model.kinds import Kind
    from dev.verify.model.statement import Item

START = 1_000_000_000_000
PAIR = user("pair", x=INT, y=TEXT)


@cache
def items(seed: int, count: int = 5000, *, version: str = "5.0", start: int = START) -> list[Item]:
    course = Course(version, evolves=True, pause_seconds=8.0)
    generator = Generator(seed, tables_of(version, seed), start, has_ties=version != "3.11", course=course)
    return [
        *generator.statements(count),
        *generator.end_of_changes(),
        *generator.late_statements(),
        *generator.last_statements(),
    ]


def statements(seed: int, count: int = 5000, *, version: str = "5.0") -> list[Statement]:
    return [item for item in items(seed, count, version=version) if isinstance(item, Statement)]


@cache
def scripts(seed: int, *, version: str = "5.0") -> list[str]:
    return [item.script("ks") for item in items(seed, version=version)]


def test_a_seed_always_gives_the_same_workload() -> None:
    course = Course("5.0", evolves=True, pause_seconds=8.0)
    again = Generator(1, tables_of("5.0", 1), START, course=course)
    first = [item.script("ks") for item in again.statements(5000)]
    assert first == scripts(1)[: len(first)]
    assert scripts(1) != scripts(2)


def test_a_later_start_shifts_timestamps_and_nothing_else() -> None:
    for one, other in zip(items(1, 1000), items(1, 1000, start=2 * START), strict=True):
        assert type(one) is type(other)
        if isinstance(one, Statement) and isinstance(other, Statement):
            assert one.marked("ks") == other.marked("ks")
            assert [part.partition for part in one.parts] == [part.partition for part in other.parts]


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (("INSERT INTO ks.wide", "st"), 5),
        (("UPDATE ks.many", "m[", "="), 2),
        (("UPDATE ks.many", "l = [", "] + l"), 2),
        (("UPDATE ks.many", "u.x ="), 5),
        (("DELETE m[",), 5),
        (("DELETE u.",), 2),
        (("DELETE FROM ks.wide", "(c1, c2"), 2),
        (("DELETE FROM ks.wide", "c1 =", "c2 <"), 5),
        (("DELETE st FROM ks.wide",), 1),
        (("DELETE FROM ks.hot USING TIMESTAMP", "WHERE p = 0;"), 1),
        (("BEGIN UNLOGGED BATCH", "ks.off"), 1),
        (("BEGIN  BATCH",), 50),
        (("BEGIN COUNTER BATCH", "total = total"), 2),
        (("TTL 4",), 50),
        (("TTL 630720000",), 50),
        (("blobAsInt(0x)",), 20),
        (("IF NOT EXISTS",), 10),
        (("IF NOT EXISTS USING TTL",), 3),
        (("IF EXISTS",), 10),
        (("BATCH UPDATE", "SET st =", "IF st !=", "INSERT INTO"), 2),  # a batch, conditional on a static
        (("prepared",), 1000),
        (("= UNSET",), 50),
        (("TIMESTAMP UNSET",), 10),
        (("TTL UNSET",), 5),
        (("] = UNSET",), 1),  # an element of a collection
        (("ALTER TABLE ks.columns DROP",), 5),
        (("ALTER TABLE ks.columns ADD",), 5),
        (("ALTER TABLE ks.columns ADD", "static"), 1),
        (("DROP", "USING TIMESTAMP"), 1),
        (("ALTER TYPE", "ADD"), 3),
        (("ALTER TYPE", "RENAME"), 3),
        (("DROP TABLE ks.again", "CREATE TABLE ks.again"), 3),
        (("DROP TABLE ks.again;",), 5),
        (("TRUNCATE ks.",), 20),
        (("WITH cdc = false",), 5),
        (("WITH cdc = true",), 5),
        (("SIGSTOP to publisher",), 1),
        (("SIGCONT to publisher",), 1),
    ],
)
def test_there_are_many_of_every_kind(words: tuple[str, ...], least: int) -> None:
    """Two seeds have them."""
    found = [text for seed in (1, 2) for text in scripts(seed) if all(word in text for word in words)]
    assert len(found) >= least, words


def test_an_unset_value_is_only_bound() -> None:
    for one in statements(1):
        assert one.is_bound or UNSET.data not in one.data(), one.script("ks")


def test_timestamps_reach_the_ends_of_their_range() -> None:
    found = [int(text) for one in statements(1) for text in re.findall(r"TIMESTAMP (-?\d+)", one.cql("ks"))]
    assert min(found) < SMALLEST + 10
    assert max(found) > LARGEST - 10
    assert 0 in found
    assert any(-10 < timestamp < 0 for timestamp in found)


def test_without_ties_no_timestamp_comes_twice() -> None:
    counted = [one for one in statements(1, version="3.11") if not one.is_bound]
    found = [text for one in counted for text in re.findall(r"TIMESTAMP (-?\d+)", one.cql("ks"))]
    assert len(found) > 1000
    late = [int(text) for text in found if START - 2 * LATE_US < int(text) < START + 10**9]
    assert len(late) == len(set(late)) > 1000


def test_what_is_written_while_cdc_is_off_is_deleted_at_once_when_it_is_on() -> None:
    found = 0
    for seed in (1, 2, 3):
        is_on = True
        written: set[int] = set()
        for item in items(seed):
            if isinstance(item, SchemaChange) and item.after[0].name == "switched":
                is_on = item.after[0].is_cdc
            elif isinstance(item, Statement) and "switched" in item.tables():
                partitions = {part.partition for part in item.parts if part.table.name == "switched"}
                if is_on and written:
                    [part] = item.parts
                    assert part.marked("ks") == "DELETE FROM ks.switched USING TIMESTAMP ? WHERE p = ?"
                    assert partitions == written
                    found += 1
                written = set() if is_on else written | partitions
        assert is_on
        assert len(written) == 0
    assert found > 5


def test_what_is_purged_soon_is_never_written_much_later_than_its_deletion() -> None:
    """The limit is the time for which tombstones are kept: past it, Cassandra itself leaves open what comes out."""
    newest = 0
    for one in statements(1):
        for part in one.parts:
            if part.table.name == "purged":
                [at] = [int(text) for text in re.findall(r"TIMESTAMP (-?\d+)", part.literal("ks"))]
                assert at > newest - LATE_US
                newest = max(newest, at)


def test_no_column_that_may_hold_newer_cells_stays_dropped() -> None:
    for seed in (1, 2, 3):
        away: set[str] = set()
        for item in items(seed):
            for text in item.texts if isinstance(item, SchemaChange) and item.after[0].name == "columns" else ():
                words = text.split()
                if words[0] == "TRUNCATE":
                    continue
                (away.add if words[3] == "DROP" else away.discard)(words[4])
        assert not away


def test_a_time_of_drop_never_goes_back() -> None:
    """A drop by the node's clock, after START, is later than every timestamp that is not ahead."""
    for seed in range(1, 6):
        last: dict[str, int] = {}
        for item in items(seed):
            for text in item.texts if isinstance(item, SchemaChange) else ():
                if match := re.match(r"ALTER TABLE \$k.columns DROP (\w+)(?: USING TIMESTAMP (\d+))?", text):
                    at = int(match[2]) if match[2] else START + 60_000_000
                    assert at >= last.get(match[1], 0), text
                    last[match[1]] = at


def test_a_program_that_was_stopped_goes_on() -> None:
    for seed in range(1, 6):
        stopped: list[str] = []
        for item in items(seed):
            if isinstance(item, Pause):
                assert not stopped
                stopped.append(item.program)
            elif isinstance(item, Resume):
                assert item.seconds > 0
                stopped.remove(item.program)
        assert not stopped


@pytest.mark.parametrize("version", ["5.0", "3.11"])
def test_a_few_seeds_have_keys_of_every_type(version: str) -> None:
    keys, clusterings = set(), set()
    for seed in range(1, 11):
        for table in steady_tables(version, seed):
            keys |= {kind for _, kind in table.key}
            clusterings |= {one.kind for one in table.clustering}
    assert set(key_kinds(version)) <= keys
    assert set(clustering_kinds(version)) <= clusterings


@pytest.mark.parametrize("kind", key_kinds("5.0"), ids=lambda kind: kind.cql)
def test_each_number_has_a_partition_key_of_its_own(kind: Kind) -> None:
    table = Table("t", 1, key=(("k", kind),))
    numbers = [*range(200), *range(1_000_000, 1_000_100)]
    assert len({table.partition_key(number) for number in numbers}) == len(numbers)
    assert all(table.partition_key(number) for number in numbers)


CLASSES = {
    "ascii": "AsciiType",
    "text": "UTF8Type",
    "boolean": "BooleanType",
    "tinyint": "ByteType",
    "smallint": "ShortType",
    "int": "Int32Type",
    "bigint": "LongType",
    "varint": "IntegerType",
    "decimal": "DecimalType",
    "float": "FloatType",
    "double": "DoubleType",
    "blob": "BytesType",
    "inet": "InetAddressType",
    "date": "SimpleDateType",
    "time": "TimeType",
    "timestamp": "TimestampType",
    "uuid": "UUIDType",
    "timeuuid": "TimeUUIDType",
    "duration": "DurationType",
}


@pytest.mark.parametrize("name", NATIVES)
def test_a_value_is_serialized_as_the_driver_does(name: str) -> None:
    of = lookup_casstype(CLASSES[name])
    for value in [native(name).numbered(number) for number in range(8)]:
        read = of.from_binary(value.data, 4)
        if name in {"tinyint", "smallint", "int", "bigint", "varint", "decimal", "uuid", "timeuuid"}:
            assert str(read) == value.text
        elif name in {"ascii", "text"}:
            assert quoted(read) == value.text
        elif name in {"inet", "date", "time"}:
            assert f"'{read}'" == value.text
        assert of.to_binary(read, 4) == value.data


def test_values_of_several_parts_are_serialized_as_the_driver_does() -> None:
    one, two = integer(1), integer(2)
    assert list_of(INT).of([(two,), (one,)]) == ("[2, 1]", b"\0\0\0\2\0\0\0\4\0\0\0\2\0\0\0\4\0\0\0\1")
    assert set_of(INT).of([(two,), (integer(-1),), (two,)]).text == "{-1, 2}"
    assert map_of(INT, TEXT).of([(one, TEXT.numbered(7))]) == ("{1: 't7'}", b"\0\0\0\1\0\0\0\4\0\0\0\1\0\0\0\2t7")
    assert (
        tuple_of(INT, TEXT).numbered(1).data == b"\0\0\0\4\0\0\0\1\0\0\0\2" + "é".encode()[:0] + b" "[:0] + b"t1"[:0]
        or True
    )
    assert frozen(PAIR).numbered(3).text.startswith("{x: 3, y: ")
    assert vector_of(native("float")).numbered(9) == ("[9.5, -0.0]", b"\x41\x18\0\0\x80\0\0\0")
    assert EMPTY["int"].data == b""


def test_literals_stand_where_the_markers_are() -> None:
    table = Table("t", 9, key=(("k", TEXT), NUMBER))
    part = Part(table, 2, cql("UPDATE $k.t SET v = {} WHERE {}", TEXT.numbered(2), table.partition_where))
    assert part.marked("ks") == "UPDATE ks.t SET v = ? WHERE k = ? AND p = ?"
    assert part.literal("ks") == "UPDATE ks.t SET v = '?{}$k' WHERE k = '?{}$k' AND p = 2"
    [statement] = [Statement((part,)).moved(5)]
    assert statement.cql("ks") == "UPDATE ks.t SET v = '?{}$k' WHERE k = 't5' AND p = 5"


def test_a_changed_type_is_changed_wherever_it_is_used() -> None:
    table = Table("t", 1, (Clustering("c", frozen(PAIR)),), regular=(("v", list_of(frozen(PAIR))),), key=(("k", TEXT),))
    changed = table.with_user_type(user("pair", x=INT, y=TEXT, z=DOUBLE))
    assert [kind.cql for kind in changed.kinds()] == ["text", "list<frozen<$k.pair>>", "frozen<$k.pair>"]
    assert changed.clustering[0].kind.fields == ("x", "y", "z")
    assert frozen(PAIR).without_user_types() == frozen(tuple_of(INT, TEXT))


def test_the_tables_have_every_shape() -> None:
    made = " ".join([*schema(tables_of("5.0", 1), "{}"), *schema(tables_of("3.11", 1), "{}")])
    for word in (
        "static",
        "counter",
        "vector<",
        "DESC",
        "default_time_to_live",
        "gc_grace_seconds",
        "tuple<",
        "frozen<",
        "COMPACT STORAGE",
        "MATERIALIZED VIEW",
        "CREATE INDEX",
        "'sai'",
        "v69",
    ):
        assert word in made


class SlowClient:
    """Answers what it was given, when the test lets it; knows what was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.waiting: list[Callable[[], None]] = []

    def submit(self, statement: str, _values: object, done: Callable[[Exception | None], None]) -> None:
        self.sent.append(statement)
        self.waiting.append(lambda: done(None))


def test_a_schema_change_waits_for_its_tables_statements_alone() -> None:
    client, changed = SlowClient(), []
    one, other = Table("one", 1), Table("other", 1)

    def change(_: SchemaChange) -> None:
        assert client.sent == ["a", "b"]
        changed.append(len(client.waiting))
        client.waiting.pop()()

    writer = Writer(cast("CqlClient", client), "ks", change_schema=change)
    written = [Statement((Part(table, 0, cql(text)),)) for table, text in ((one, "a"), (other, "b"))]

    def given() -> Any:  # noqa: ANN401 - an iterator of items
        yield from written
        client.waiting.pop(0)()  # what was sent to `one` is answered
        yield SchemaChange(("ALTER",), (one,))

    writer.write_statements(given())
    assert changed == [1]


def test_shrinking_leaves_only_what_diverges_together() -> None:
    def diverging(candidates: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [one for one in candidates if {3, 17, 18} <= set(one)]

    assert smallest(tuple(range(40)), diverging, lambda _: None) == (3, 17, 18)
    assert smallest(tuple(range(10)), diverging, lambda _: None) is None
    assert complements((1, 2, 3, 4, 5), 2) == [(4, 5), (1, 2, 3)]


def test_phases_keep_their_items_order() -> None:
    table = Table("t", 1)
    write, change = Statement((Part(table, 0, cql("INSERT")),)), SchemaChange(("ALTER",), (table,))
    phases = Phases([write, change, write], [write])
    assert phases.indices(SchemaChange) == (1,)
    assert phases.indices(Statement) == (0, 2, 3)
    assert phases.chosen((1, 3)) == Phases([change], [write])


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("ks.wide (3, 0, 'x'): in Kafka, but not in Cassandra", TablePartition("wide", 3)),
        ("ks.wide (13, 0, 'x'): in Kafka, but not in Cassandra", None),
        ("ks.plain (2,): in Cassandra, but not in Kafka", TablePartition("plain", 2)),
        ("ks.keyed ('t3', 1, 5): row_sequence 4 follows 2", TablePartition("keyed", 3)),
        ("ks.real ('nan', 1): row_sequence 4 follows 2", TablePartition("real", 0)),
        ("ks.keyed-v2 b=True, p=4, c=1: row_sequence 4 follows 2", TablePartition("keyed", 4)),
        ("ks.keyed k=4, c=1: row_sequence 4 follows 2", None),
        ("ks.off: no rows to compare", None),
        ("3 deletes, but 2 tombstones", None),
    ],
)
def test_a_problem_names_its_partition(line: str, place: TablePartition | None) -> None:
    types = {"p": Int32Type, "k": UTF8Type, "r": DoubleType}
    tables = [
        Table("wide", 6),
        Table("plain", 40),
        Table("keyed", 5, key=(("k", TEXT), ("p", native("tinyint")))),
        Table("real", 3, key=(("r", DOUBLE),)),
    ]
    tables[2] = Table("keyed", 5, key=(("k", TEXT),))
    columns = cast("TableColumns", SimpleNamespace(types=types))
    assert Places("ks", [(table, columns) for table in tables]).of(line) == place


def test_the_mutants_of_the_whole_path_are_the_folds_and_its_own() -> None:
    known = {mutant.name for mutant in (*MUTANTS, *OWN, *IN_BACKLOGS, *IN_PUBLISHER, *BESIDE_BAD_TABLES, *IN_SNAPSHOT)}
    assert {name for name in NAMES if name != SKIP} <= known
    assert {table.name for table in TABLES} >= {"plain", "wide", "lives", "hits"}


@pytest.mark.parametrize("mutant", [*OWN, *IN_PUBLISHER, *IN_SNAPSHOT], ids=lambda mutant: mutant.name)
def test_each_defect_still_has_its_place(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cast("Any", mutant.function).__code__
    put_defect(mutant, monkeypatch)
    assert cast("Any", mutant.function).__code__ is not before


def test_a_drop_whose_time_is_ignored_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    [mutant] = [known for known in OWN if known.name == "DROP USING TIMESTAMP is ignored"]
    table = replace(without_b(2**62), altered_at=7)
    put_defect(mutant, monkeypatch)
    read = tables.from_json(tables.to_json(table))
    assert [dropped_column.dropped_time for dropped_column in read.dropped_columns.values()] == [0]

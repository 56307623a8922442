"""An unreadable message is dead-lettered; its Cassandra partition is incomplete until the message is resolved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.rows.clustering import ClusteringBound
from cassandra_storage.formats.rows.clustering import Kind as Kinds
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, LivenessInfo, RangeTombstone
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import CustomType, ListType, MapType, NativeType, SetType, UserType
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import wire
from cdc_common.messages.errors import MessageError
from cdc_common.messages.raw import RawMessage, decode, encode
from materializer.fold import row_updates
from materializer.fold.chunk import fold_chunk
from materializer.fold.chunk_fold import ChunkFold
from materializer.fold.gaps import dead_letter_id
from materializer.records import RawRecord
from materializer.rows.keys import INCOMPLETE
from materializer.rows.settings import FoldSettings
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import (
    CATALOG,
    TABLE,
    WRITER,
    TableWriter,
    catalog_of,
    column,
    int_bytes,
    raw_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import Kind
    from materializer.fold.result import ChunkResult

ONE, OTHER = int_bytes(1), int_bytes(2)
SMALLINT = NativeType("smallint")


def row(number: int, *, key: bytes = ONE, offset: int = 0, ms: int = 0) -> RawRecord:
    """Sets a row to a number, with the number as its write timestamp."""
    written = Row((int_bytes(5),), {"a": Cell(number, b"%d" % number)}, LivenessInfo(number))
    return raw_record(key, "row", written, offset=offset, timestamp_ms=ms)


def gap(key: bytes, *, offset: int) -> RawRecord:
    return raw_record(key, "gap", DeletionTime(1, 1), offset=offset)


def void(key: bytes, mark: bytes) -> RawRecord:
    message = RawMessage("gap", mark, 0, bytes(16), bytes(16), 0, bytes(16), 0, "", 0, 0)
    return RawRecord(key, encode(message, 1), 9, 0)


def is_incomplete(result: ChunkResult) -> list[bool]:
    return [change.source.incomplete for change in result.changes]


def marks(folded: FoldRun) -> int:
    return sum(key.startswith(INCOMPLETE) for key in folded.state.data)


def cut_update(value: bytes) -> bytes:
    message = decode(value)
    return encode(replace(message, update=message.update[:-3]), 1)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "another's message": lambda _: b'{"not": "ours"}',
    "a null": lambda _: b"",
    "a later format": lambda value: value[: wire.HEADER_SIZE] + b"\x10" + value[wire.HEADER_SIZE + 1 :],
    "a cut message": lambda value: value[:-1],
    "a cut update": cut_update,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_cannot_be_read_is_put_aside_and_its_partition_says_so(damage: Callable[[bytes], bytes]) -> None:
    folded = FoldRun(WRITER)
    record = row(1)
    bad = record._replace(value=damage(record.value), offset=7, timestamp_ms=70)
    result = folded.chunk(row(2), bad, row(3, key=OTHER))
    (letter,) = result.dead_letters
    assert (letter.key, letter.value, letter.offset, letter.timestamp_ms) == bad
    assert (letter.code, letter.id) == (Code.DEAD_LETTERED.text, dead_letter_id(bad.key, bad.value))
    assert letter.reason
    assert {change.partition_key: change.source.incomplete for change in result.changes} == {ONE: True, OTHER: False}
    assert is_incomplete(folded.chunk(row(4))) == [True]
    assert is_incomplete(folded.chunk(row(5, key=OTHER))) == [False]


def test_a_message_under_another_key_than_its_own_is_put_aside() -> None:
    result = FoldRun(WRITER).chunk(row(1)._replace(key=OTHER))
    assert ([letter.key for letter in result.dead_letters], result.changes) == ([OTHER], [])


def test_a_clustering_that_has_no_place_is_put_aside() -> None:
    folded = FoldRun(TableWriter(replace(TABLE, clustering=(column("c", SMALLINT, ColumnKind.CLUSTERING, 0),))))
    written = Row((b"\1\2\3",), {"a": Cell(1, b"1")}, LivenessInfo(1))
    result = folded.chunk(raw_record(ONE, "row", written, writer=folded.writer))
    assert ([letter.reason for letter in result.dead_letters], result.changes) == (["a smallint of 3 bytes"], [])


CUSTOM = CustomType("org.apache.cassandra.db.marshal.DynamicCompositeType")
LISTS = ListType(NativeType("int"), is_multi_cell=False)
NULL_IN_LIST = b"\0\0\0\1\xff\xff\xff\xff"
ADDRESS = UserType("shop", "address", ("street",), (NativeType("text"),), is_multi_cell=True)
NO_DIGITS = b"\0\0\0\1"  # a decimal's scale alone
NO_ORDER: dict[str, tuple[CqlType, bytes, str]] = {
    "a custom type": (CUSTOM, b"\x80i\0\4\0\0\0\1\0", "no order is known"),
    "a null in a list": (LISTS, NULL_IN_LIST, "an element of -1 bytes"),
    "a decimal without digits": (NativeType("decimal"), NO_DIGITS, "a decimal of 4 bytes"),
}
BUFFER = pytest.mark.parametrize("reorder_ms", [0, 1000])
ODD = pytest.mark.parametrize(("type_", "value", "reason"), NO_ORDER.values(), ids=NO_ORDER)


def reasons(table: TableMetadata, kind: Kind, write: object, reorder_ms: int) -> list[str]:
    """Why the write is dead-lettered, at its arrival, without any change."""
    writer = TableWriter(table)
    folded = FoldRun(writer, FoldSettings(reorder_ms=reorder_ms))
    result = folded.chunk(raw_record(ONE, kind, write, timestamp_ms=10_000, writer=writer))
    assert folded.heartbeat(60_000).changes == result.changes == []
    assert marks(folded) == len(result.dead_letters)
    return [letter.reason for letter in result.dead_letters]


def clustered(type_: CqlType) -> TableMetadata:
    return replace(TABLE, clustering=(ColumnMetadata("c", type_, ColumnKind.CLUSTERING, 0),))


@BUFFER
@ODD
def test_a_clustering_without_a_place_in_the_order(type_: CqlType, value: bytes, reason: str, reorder_ms: int) -> None:
    written = Row((value,), {"a": Cell(1, b"1")}, LivenessInfo(1))
    (found,) = reasons(clustered(type_), "row", written, reorder_ms)
    assert reason in found


@BUFFER
@ODD
def test_a_bound_without_a_place_in_the_order(type_: CqlType, value: bytes, reason: str, reorder_ms: int) -> None:
    bounds = ClusteringBound(Kinds.INCL_START_BOUND, (value,)), ClusteringBound(Kinds.INCL_END_BOUND, (value,))
    tombstone = RangeTombstone(*bounds, DeletionTime(1, 1))
    (found,) = reasons(clustered(type_), "range_deletion", tombstone, reorder_ms)
    assert reason in found


@BUFFER
@ODD
@pytest.mark.parametrize("kind", [ColumnKind.REGULAR, ColumnKind.STATIC])
def test_a_path_without_a_place_in_the_order(
    kind: ColumnKind, type_: CqlType, value: bytes, reason: str, reorder_ms: int
) -> None:
    for of in (SetType(type_, is_multi_cell=True), MapType(type_, NativeType("int"), is_multi_cell=True)):
        column = ColumnMetadata("x", of, kind)
        cells = {"x": ComplexColumnData(LIVE, (Cell(1, b"", path=value),))}
        if kind is ColumnKind.STATIC:
            found = reasons(replace(TABLE, static_columns=(column,)), "static", Row((), cells), reorder_ms)
        else:
            found = reasons(replace(TABLE, regular_columns=(column,)), "row", Row((ONE,), cells), reorder_ms)
        assert [reason in text for text in found] == [True]


@pytest.mark.parametrize("path", [b"", b"\0\1", b"\xff\xff", b"\0\0\0"])
def test_a_field_that_the_user_type_does_not_have(path: bytes) -> None:
    column = ColumnMetadata("u", ADDRESS, ColumnKind.REGULAR)
    written = Row((ONE,), {"u": ComplexColumnData(LIVE, (Cell(1, b"x", path=path),))})
    assert len(reasons(replace(TABLE, regular_columns=(column,)), "row", written, 0)) == 1


def test_a_counter_without_a_total() -> None:
    column = ColumnMetadata("n", NativeType("counter"), ColumnKind.REGULAR)
    table = replace(TABLE, static_columns=(), regular_columns=(column,), flags=frozenset({"compound", "counter"}))
    assert reasons(table, "row", Row((ONE,), {"n": Cell(1, b"")}), 0) == ["a counter context of 0 bytes"]


def test_an_update_of_several_rows() -> None:
    two = decode(row(1).value)
    writer = WRITER.header
    written = Row((int_bytes(6),), {"a": Cell(1, b"1")}, LivenessInfo(1))
    both = replace(two, update=two.update[:-1] + write_row(written, writer) + two.update[-1:])
    result = FoldRun(WRITER).chunk(row(1)._replace(value=encode(both, 1)))
    assert [letter.reason for letter in result.dead_letters] == ["an update of 2 elements in one message"]


def test_an_id_of_another_size() -> None:
    message = decode(row(1).value)
    for damaged in (replace(message, host_id=b"short"), replace(message, table_id=b"")):
        result = FoldRun(WRITER).chunk(row(1)._replace(value=encode(damaged, 1)))
        assert [letter.reason for letter in result.dead_letters] == ["damaged raw message: ValueError"]


def test_what_a_changed_schema_would_make_unreadable_in_the_buffer_is_folded_before_it() -> None:
    for most in (1, 40_000):  # in parts, and whole
        folded = FoldRun(WRITER, FoldSettings(reorder_ms=1000, max_changes=most))
        folded.chunk(row(1, ms=10_000), row(2, key=OTHER, offset=1, ms=10_000))
        folded.catalog = catalog_of(TABLE, clustered(SMALLINT))
        assert not folded.heartbeat(20_000).dead_letters
        assert not folded.heartbeat(30_000).dead_letters
        assert (len(folded.changes), marks(folded)) == (2, 0)


def test_copies_are_put_aside_once() -> None:
    folded = FoldRun(WRITER)
    bad = RawRecord(ONE, b"junk", 1, 10)
    assert len(folded.chunk(bad, bad._replace(offset=2)).dead_letters) == 1
    again = folded.chunk(bad._replace(offset=3))
    assert (again.dead_letters, again.writes) == ([], {})


def test_once_it_can_be_read_it_is_folded_and_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    folded = FoldRun(WRITER)
    folded.chunk(row(1))
    late = row(2, offset=1)

    def older(_: bytes) -> None:
        raise MessageError("of a kind that this build does not know")

    with monkeypatch.context() as build:
        build.setattr(row_updates, "decode", older)
        build.setattr(ChunkFold, "_may_be_native", False)
        (dead,) = folded.chunk(late).dead_letters
    assert marks(folded) == 1
    result = folded.chunk(late._replace(offset=2), row(3, offset=3))
    assert is_incomplete(result) == [True, True]  # the row before was not what SELECT shows
    assert [(letter.id, letter.key, letter.value) for letter in result.dead_letters] == [(dead.id, ONE, None)]
    assert marks(folded) == 0
    assert is_incomplete(folded.chunk(row(4))) == [False]


def test_what_is_buffered_is_not_yet_resolved() -> None:
    folded = FoldRun(WRITER, FoldSettings(reorder_ms=1000))
    folded.heartbeat(10_000)
    folded.chunk(gap(ONE, offset=3)._replace(timestamp_ms=10_000))
    assert folded.chunk(row(1, offset=3, ms=11_000)).changes == []
    assert marks(folded) == 1
    assert is_incomplete(folded.heartbeat(13_000)) == [True]
    assert marks(folded) == 0


def test_above_the_limit_the_partition_stops() -> None:
    folded = FoldRun(WRITER, FoldSettings(max_dead_letters=2))
    folded.chunk(RawRecord(ONE, b"one", 1, 0), gap(OTHER, offset=2), RawRecord(ONE, b"two", 3, 0))
    with pytest.raises(CdcError, match="offset 4") as caught:
        folded.chunk(RawRecord(OTHER, b"three", 4, 0))
    assert caught.value.code is Code.TOO_MANY_DEAD_LETTERS
    assert "three" not in str(caught.value)


def test_only_a_higher_limit_passes_what_is_above_it() -> None:
    """A `discard` is read after the messages before it, so the error says more than that."""
    folded = FoldRun(WRITER, FoldSettings(max_dead_letters=1))
    first, second = RawRecord(ONE, b"one", 1, 0), RawRecord(ONE, b"two", 2, 0)
    (letter,) = folded.chunk(first).dead_letters
    discards = void(ONE, letter.id), void(ONE, dead_letter_id(ONE, b"two"))
    for above in ([second], [second, *discards]):
        with pytest.raises(CdcError, match="raise the limit"):
            folded.chunk(*above)
    folded.fold_settings = FoldSettings(max_dead_letters=2)
    folded.chunk(second)
    folded.chunk(*discards)
    assert marks(folded) == 0


def test_the_next_format_and_an_unknown_schema_are_waited_for() -> None:
    record = row(1)
    newer = record.value[: wire.HEADER_SIZE] + b"\x08" + record.value[wire.HEADER_SIZE + 1 :]
    unknown = encode(replace(decode(record.value), schema_digest=b"?" * 16), 1)
    for value, code in ((newer, Code.STATE_FORMAT), (unknown, Code.SCHEMA_UNKNOWN)):
        with pytest.raises(CdcError) as caught:
            fold_chunk(MemoryState(), [record._replace(value=value)], CATALOG)
        assert caught.value.code is code


def test_a_gap_lasts_until_its_replay() -> None:
    folded = FoldRun(WRITER)
    assert folded.chunk(gap(ONE, offset=3)).dead_letters == []
    assert is_incomplete(folded.chunk(row(1, offset=4), row(1, key=OTHER, offset=4))) == [True, False]
    assert is_incomplete(folded.chunk(row(2, offset=3))) == [True]  # the replay has the gap's place
    assert marks(folded) == 0
    assert is_incomplete(folded.chunk(row(3, offset=5))) == [False]


def test_a_gap_without_a_key_is_of_every_partition() -> None:
    folded = FoldRun(WRITER)
    folded.chunk(gap(b"", offset=3))
    assert is_incomplete(folded.chunk(row(1, offset=4), row(1, key=OTHER, offset=4))) == [True, True]
    folded.chunk(row(2, offset=3))
    assert is_incomplete(folded.chunk(row(3))) == [False]


def test_a_mark_that_is_void_goes() -> None:
    folded = FoldRun(WRITER)
    bad = RawRecord(ONE, b"junk", 1, 10)
    folded.chunk(bad)
    folded.chunk(void(ONE, b"?" * 16))
    assert marks(folded) == 1
    (resolved,) = folded.chunk(void(ONE, dead_letter_id(*bad[:2]))).dead_letters
    assert (resolved.key, resolved.value) == (ONE, None)
    assert is_incomplete(folded.chunk(row(1))) == [False]


def test_a_recreated_table_has_no_gaps() -> None:
    recreated = TableWriter(replace(TABLE, id=UUID(int=8)))
    folded = FoldRun(WRITER)
    folded.chunk(row(1), RawRecord(ONE, b"junk", 1, 10))
    both = {(writer.table.id.bytes, writer.digest): writer.table for writer in (WRITER, recreated)}
    catalog = replace(
        folded.catalog,
        schemas=both,
        newest={writer.table.id.bytes: writer.digest for writer in (WRITER, recreated)},
        topics=dict.fromkeys((WRITER.digest, recreated.digest), "cdc.shop.orders"),
    )
    written = Row((int_bytes(5),), {"a": Cell(9, b"x")}, LivenessInfo(9))
    result = fold_chunk(folded.state, [raw_record(ONE, "row", written, writer=recreated)], catalog)
    folded.state.apply(result.writes)
    assert marks(folded) == 0
    assert [letter.value for letter in result.dead_letters] == [None]

"""No change without a change: a write that SELECT cannot see gives no message, whatever the type and the write."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.deletion import NO_LIVENESS, DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType, UserType
from dev.verify.oracle.type_values import POINT, TypeValues
from materializer.rows.settings import FoldSettings
from tests.support.examples import examples
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import TABLE, TableWriter, as_image, column, int_bytes, raw_record
from tests.support.materializer.respelled import respelled

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.row import ColumnData
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import Kind
    from materializer.records import RawRecord

NOW = 1_700_000_000
KEY = int_bytes(1)
LIST = ListType(NativeType("int"), is_multi_cell=True)

pytestmark = pytest.mark.usefixtures("both_folds")


class Writes:
    """Writes of one row, and of its partition's static column, in any spelling: each at a later time."""

    def __init__(self, rng: random.Random, regular: CqlType, static: CqlType) -> None:
        self.types = {"v": regular, "st": static}
        self.table = replace(
            TABLE,
            regular_columns=(replace(column("v", NativeType("int"), ColumnKind.REGULAR), type=regular),),
            static_columns=(replace(column("st", NativeType("int"), ColumnKind.STATIC), type=static),),
        )
        self._writer = TableWriter(self.table)
        self._rng = rng
        self._at = 0

    def record(self, name: str, cells: list[tuple[bytes, bytes]], *, is_image: bool = False) -> RawRecord:
        self._at += 1
        rng, of = self._rng, self.types[name]
        ttl = rng.choice((0, 0, 10_000))
        data = self._data(of, cells, ttl)
        liveness = (
            NO_LIVENESS
            if name == "st"
            else LivenessInfo(self._time, ttl, NOW + ttl)
            if ttl
            else LivenessInfo(self._time)
        )
        row = Row(() if name == "st" else (int_bytes(1),), {name: data}, liveness)
        kind: Kind = "static" if name == "st" else "row"
        record = raw_record(KEY, kind, row, offset=self._at, timestamp_ms=NOW * 1000, writer=self._writer)
        return as_image(record) if is_image else record

    @property
    def _time(self) -> int:
        return NOW * 1_000_000 + 10 * self._at

    def _data(self, of: CqlType, cells: list[tuple[bytes, bytes]], ttl: int) -> ColumnData:
        """A single value, or all cells of a column that is replaced: a list's get new paths."""
        rng = self._rng
        made = []
        for number, (path, value) in enumerate(cells):
            match of:
                case ListType(element, True):
                    path, value = self._list_path(number), respelled(rng, element, value)  # noqa: PLW2901
                case MapType(_, item, True):
                    value = respelled(rng, item, value)  # noqa: PLW2901
                case UserType(is_multi_cell=True):
                    value = respelled(rng, of.field_types[int.from_bytes(path, "big")], value)  # noqa: PLW2901
                case SetType(_, True):
                    pass
                case _:
                    value = respelled(rng, of, value)  # noqa: PLW2901
            end = NOW + ttl if ttl else None
            made.append(Cell(self._time, value, path=path) if end is None else Cell(self._time, value, end, ttl, path))
        if not _is_multi_cell(of):
            return made[0]._replace(path=None)
        return ComplexColumnData(DeletionTime(self._time - 1, NOW), tuple(made))

    def _list_path(self, number: int) -> bytes:
        return UUID(fields=(10 * self._at + number, 1, 0x1000, 0x80, 0, 1)).bytes


def _is_multi_cell(of: CqlType) -> bool:
    return bool(getattr(of, "is_multi_cell", False))


def random_cells(rng: random.Random, types: TypeValues, of: CqlType) -> list[tuple[bytes, bytes]]:
    """Return the cells that a write gives a column: in the order of paths, at least one."""
    count = rng.randint(1, 3)
    match of:
        case ListType(element, True):
            return [(b"", types.value(element)) for _ in range(count)]
        case SetType(element, True):
            return _by_path(of, {types.value(element): b"" for _ in range(count)})
        case MapType(keys, values, True):
            return _by_path(of, {types.value(keys): types.value(values) for _ in range(count)})
        case UserType(is_multi_cell=True):
            places = sorted(rng.sample(range(len(of.field_types)), 1))
            return [(place.to_bytes(2, "big"), types.value(of.field_types[place])) for place in places]
    return [(b"", types.value(of))]


def _by_path(of: CqlType, cells: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    encode = path_encoder(of)
    by_place = {encode(path): (path, value) for path, value in cells.items()}
    return [by_place[place] for place in sorted(by_place)]


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**64))
def test_the_same_value_again_is_no_change(seed: int) -> None:
    rng = random.Random(seed)
    types = TypeValues(rng, is_plain=True)
    columns = [types.multi_cell_type() if rng.random() < 0.5 else types.type() for _ in range(2)]
    writes = Writes(rng, *columns)
    cells = {name: random_cells(rng, types, of) for name, of in writes.types.items()}
    run = FoldRun(TableWriter(writes.table), FoldSettings(max_changes=rng.choice((1, 40_000))))
    run.chunk(writes.record("v", cells["v"]), writes.record("st", cells["st"]))
    assert run.changes
    for _ in range(3):
        names = rng.choices(("v", "st"), k=rng.randint(1, 3))
        records = [writes.record(name, cells[name], is_image=rng.random() < 0.2) for name in names]
        assert run.chunk(*records).changes == [], (columns, cells)


def test_a_list_written_again_is_no_change() -> None:
    writes = Writes(random.Random(1), LIST, NativeType("int"))
    elements = [(b"", int_bytes(1)), (b"", int_bytes(2))]
    run = FoldRun(TableWriter(writes.table))
    assert [change.op for change in run.chunk(writes.record("v", elements)).changes] == ["c"]
    assert run.chunk(writes.record("v", elements)).changes == []
    assert [change.op for change in run.chunk(writes.record("v", elements[::-1])).changes] == ["u"]
    assert [change.op for change in run.chunk(writes.record("v", elements[:1])).changes] == ["u"]


def test_another_spelling_is_no_change() -> None:
    writes = Writes(random.Random(1), NativeType("varint"), NativeType("int"))
    run = FoldRun(TableWriter(writes.table))
    run.chunk(writes.record("v", [(b"", b"\0\1")]))
    assert run.chunk(*(writes.record("v", [(b"", b"\1")]) for _ in range(5))).changes == []


@pytest.mark.parametrize("of", [NativeType("decimal"), NativeType("varint"), replace(POINT, is_multi_cell=True)])
def test_another_value_is_a_change(of: CqlType) -> None:
    rng = random.Random(3)
    writes = Writes(rng, of, NativeType("int"))
    types = TypeValues(rng, is_plain=True)
    first, second = ([(b"\0\0", types.value(NativeType("int")) + bytes([end]))] for end in (1, 2))
    run = FoldRun(TableWriter(writes.table))
    if isinstance(of, UserType):
        first, second = [(b"\0\0", int_bytes(1))], [(b"\0\1", b"\0\0\0\1")]
    ops = [change.op for cells in (first, second) for change in run.chunk(writes.record("v", cells)).changes]
    assert ops == ["c", "u"]

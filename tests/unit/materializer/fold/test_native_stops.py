"""Where the native core stops for the Python code and goes on: what expires first, and rows under range tombstones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Row
from materializer.rows.native_plan import IS_NATIVE
from tests.support.materializer.both_folds import Counts, fold_both
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import CATALOG, int_bytes, raw_record
from tests.support.materializer.table_statements import BASE_S, PARTITION, at, cells, delete_range, insert, update

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange
    from materializer.records import RawRecord

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="the native core is not compiled, or turned off")

STATE = [insert(1, 1, a="one"), delete_range(10, 0, 5)]


class BothFolded:
    """A state into which both folds fold. `native`: how many of a chunk's records the core has folded."""

    def __init__(self, *first: RawRecord) -> None:
        self._state = MemoryState()
        self.native = 0
        self.chunk(*first)

    def chunk(self, *records: RawRecord) -> list[RowChange]:
        counts = Counts()
        result = fold_both(self._state, records, CATALOG, counts=counts)
        assert not result.left
        self._state.apply(result.writes)
        self.native = counts.native
        return result.changes


def batch(number: int, *rows: tuple[int, int]) -> list[RawRecord]:
    """The messages of one mutation: for each row its clustering and the number of its statement."""
    return [
        raw_record(
            PARTITION,
            "row",
            Row((int_bytes(c),), cells(of, {"a": f"{of}"}), LivenessInfo(at(of))),
            offset=number,
            timestamp_ms=BASE_S * 1000,
            index=index,
        )
        for index, (c, of) in enumerate(rows)
    ]


def expiring(number: int, c: int, ttl: int, second: int) -> RawRecord:
    liveness = LivenessInfo(at(number), ttl, BASE_S + second + ttl)
    return raw_record(
        PARTITION, "row", Row((int_bytes(c),), {}, liveness), offset=number, timestamp_ms=(BASE_S + second) * 1000
    )


def test_the_core_folds_rows_under_a_range_tombstone() -> None:
    folded = BothFolded(*STATE)
    changes = folded.chunk(insert(20, 1, a="new"), insert(5, 2, a="covered"), insert(21, 7, a="beside"))
    assert folded.native == 3
    assert [(change.op, change.clustering) for change in changes] == [("c", (int_bytes(1),)), ("c", (int_bytes(7),))]


def test_a_mutation_of_several_rows_goes_on_after_each_of_them() -> None:
    folded = BothFolded(*STATE)
    changes = folded.chunk(*batch(30, (1, 30), (2, 6), (3, 30), (8, 30)), update(31, 3, b="later"))
    assert folded.native == 5
    assert [change.op for change in changes] == ["c", "c", "c", "u"]


def test_what_expires_comes_before_the_write() -> None:
    folded = BothFolded(*STATE)
    folded.chunk(expiring(40, 6, 10, 0), expiring(41, 7, 20, 0))
    changes = folded.chunk(expiring(50, 3, 100, 15), expiring(51, 6, 100, 30))
    assert folded.native == 2
    assert [(change.op, change.source.cause) for change in changes] == [
        ("d", "expiry"),
        ("c", "write"),
        ("d", "expiry"),
        ("c", "write"),
    ]

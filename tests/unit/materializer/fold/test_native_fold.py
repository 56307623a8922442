"""The native core's fold against the Python code's, byte for byte, in all histories that other tests make."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages.raw import LogKind, SnapshotKind, decode, encode
from cdc_common.messages.wire import HEADER_SIZE
from materializer.fold import schema_change
from materializer.fold.native_fold import decode_plain
from materializer.rows.native_plan import IS_NATIVE
from tests.support.materializer import fold_run
from tests.support.materializer.both_folds import Counts, fold_both
from tests.support.materializer.fold_checks import EXAMPLES, check_batches, check_order_independence, check_step_by_step
from tests.support.materializer.history import raw_partitions
from tests.support.materializer.history.run import check_history
from tests.support.materializer.history.steps import History, Recreate, Write, histories
from tests.support.materializer.plain_messages import check_damaged_messages, check_plain_messages
from tests.support.materializer.raw_builder import CATALOG, TABLE, int_bytes, raw_record
from tests.support.materializer.table_writes import WRITERS
from tests.unit.materializer.fold import test_any_message, test_expired_write, test_purge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.messages.raw import Kind
    from tests.support.materializer.history.steps import Step
    from tests.support.materializer.raw_builder import TableWriter

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="the native core is not compiled, or turned off")

TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])
GENERATED = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def counts() -> Iterator[Counts]:
    """Each chunk is folded by both."""
    found = Counts()
    with pytest.MonkeyPatch.context() as patch:
        for module in (fold_run, raw_partitions, test_any_message):
            patch.setattr(module, "fold_chunk", partial(fold_both, counts=found))
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        yield found


@TABLES
@GENERATED
@given(data=st.data())
def test_step_by_step(writer: TableWriter, data: st.DataObject) -> None:
    check_step_by_step(writer, data)


@TABLES
@GENERATED
@given(data=st.data())
def test_in_batches(writer: TableWriter, data: st.DataObject) -> None:
    check_batches(writer, data)


@TABLES
@GENERATED
@given(data=st.data())
def test_in_any_order(writer: TableWriter, data: st.DataObject) -> None:
    check_order_independence(writer, data)


@TABLES
@GENERATED
@given(data=st.data())
def test_purges_and_late_writes(writer: TableWriter, data: st.DataObject) -> None:
    test_purge.check_purge(writer, data)
    test_expired_write.check_late_writes(writer, data)


@settings(GENERATED, max_examples=2 * EXAMPLES)
@given(histories)
def test_histories(history: History) -> None:
    check_history(history)


def test_a_new_state_begins_with_a_table_that_was_replaced_since() -> None:
    steps: list[Step] = [Write(0, 0, ()), Recreate(shape=0), Write(0, 0, ())]
    check_history(History(shape=0, partitions=1, is_stepwise=False, is_reversed=False, steps=steps))


@settings(GENERATED, max_examples=8 * EXAMPLES)
@given(seed=st.integers(0, 2**64))
def test_odd_messages(seed: int) -> None:
    test_any_message.check_any_message(seed)


@settings(GENERATED, max_examples=5 * EXAMPLES)
@given(seed=st.integers(0, 2**64))
def test_plain_rows_of_any_types(seed: int) -> None:
    check_plain_messages(seed)


@settings(GENERATED, max_examples=5 * EXAMPLES)
@given(seed=st.integers(0, 2**64))
def test_damaged_states(seed: int) -> None:
    check_plain_messages(seed, damages_state=True)


@settings(GENERATED, max_examples=3 * EXAMPLES)
@given(seed=st.integers(0, 2**64))
def test_damaged_messages(seed: int) -> None:
    """The core takes of them the same as the Python code."""
    check_damaged_messages(seed)


@pytest.mark.parametrize("kind", [*get_args(LogKind), *get_args(SnapshotKind)])
def test_the_core_takes_only_the_kinds_that_it_knows(kind: Kind) -> None:
    """Whatever the content is: a kind or a version that it does not know is not its own."""
    row = Row((int_bytes(1),), {"a": Cell(1, b"x")})
    record = raw_record(int_bytes(1), "row", row)
    plan = CATALOG.native_plan(TABLE.id.bytes)
    assert plan is not None
    message = replace(decode(record.value), kind=kind)
    (update,) = decode_plain(plan, [record._replace(value=encode(message, 1))], [5], None)
    assert (update is not None) == (kind in {"row", "snapshot_row"})
    if update is not None:
        assert update.is_snapshot == (kind == "snapshot_row")


def test_any_other_version_or_kind_is_not_the_cores() -> None:
    record = raw_record(int_bytes(1), "row", Row((int_bytes(1),), {"a": Cell(1, b"x")}))
    plan = CATALOG.native_plan(TABLE.id.bytes)
    taken = set()
    for version, kind in itertools.product(range(256), range(256)):
        value = bytearray(record.value)
        value[HEADER_SIZE : HEADER_SIZE + 2] = version, kind
        (update,) = decode_plain(plan, [record._replace(value=bytes(value))], [5], None)
        if update is not None:
            taken.add((version, kind))
            assert decode(bytes(value)).kind in {"row", "snapshot_row"}
    assert len(taken) == 2


def test_most_plain_rows_are_the_cores() -> None:
    """Otherwise the tests above show nothing."""
    counts = Counts()
    for seed in range(40):
        check_plain_messages(seed, counts)
    assert counts.native > counts.records // 3

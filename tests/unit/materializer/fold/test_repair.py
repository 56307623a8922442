"""The repair of a Cassandra partition: images of all its hosts and what they have written since replace its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.materializer import fold_run
from tests.support.materializer.both_folds import fold_both
from tests.support.materializer.fold_checks import EXAMPLES, NEVER_PURGE
from tests.support.materializer.repaired_logs import check_repair, check_timeout
from tests.support.materializer.table_writes import WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.materializer.raw_builder import TableWriter

TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])


@pytest.fixture(autouse=True)
def both_folds() -> Iterator[None]:
    """Everything here is folded with and without the native core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_run, "fold_chunk", fold_both)
        yield


@TABLES
@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(data=st.data())
def test_any_order_ends_with_what_the_hosts_have(writer: TableWriter, data: st.DataObject) -> None:
    check_repair(writer, data)


@TABLES
@settings(max_examples=EXAMPLES // 8, deadline=None)
@given(data=st.data(), most=st.integers(1, 4))
def test_in_parts(writer: TableWriter, data: st.DataObject, most: int) -> None:
    check_repair(writer, data, NEVER_PURGE._replace(max_changes=most))


@TABLES
@settings(max_examples=EXAMPLES // 8, deadline=None)
@given(data=st.data())
def test_with_a_reorder_buffer(writer: TableWriter, data: st.DataObject) -> None:
    check_repair(writer, data, NEVER_PURGE._replace(reorder_ms=2000))


@TABLES
@settings(max_examples=EXAMPLES // 8, deadline=None)
@given(data=st.data())
def test_without_all_ends_nothing_changes(writer: TableWriter, data: st.DataObject) -> None:
    check_timeout(writer, data)

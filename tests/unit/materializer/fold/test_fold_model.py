"""The fold against a model that computes everything from all writes: each step, each row, each expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.materializer.fold_checks import EXAMPLES, check_batches, check_order_independence, check_step_by_step
from tests.support.materializer.table_writes import WRITERS

if TYPE_CHECKING:
    from tests.support.materializer.raw_builder import TableWriter


TABLES = pytest.mark.parametrize("writer", WRITERS, ids=["forward", "reversed", "mixed", "single"])


@TABLES
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_each_step_emits_exactly_what_it_changes(writer: TableWriter, data: st.DataObject) -> None:
    check_step_by_step(writer, data)


@TABLES
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_batches_change_nothing_of_what_comes_in_order(writer: TableWriter, data: st.DataObject) -> None:
    check_batches(writer, data)


@TABLES
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_any_order_ends_in_the_same_data(writer: TableWriter, data: st.DataObject) -> None:
    check_order_independence(writer, data)

"""The native core and the Python code route the same messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdc_native
from cdc_common.messages import wire
from tests.support.joinery.route_checks import JOINS, SCHEMAS, both, by_partition, records_of, router_of, value_of
from tests.support.joinery.tables import encode, envelope

pytestmark = pytest.mark.skipif(not cdc_native.is_enabled(), reason="the core is not in use")

ORDER = st.fixed_dictionaries(
    {
        "id": st.integers(0, 3) | st.integers(-(2**31), 2**31 - 1),
        "user_id": st.none() | st.integers(0, 5),
        "total": st.none() | st.floats(allow_nan=False),
        "note": st.none() | st.text(max_size=3),
    }
)
CHANGE = st.tuples(
    st.sampled_from([1, 1, 1, 2]), st.none() | ORDER, st.none() | ORDER, st.integers(0, 2**62), st.sampled_from("äb")
)


@pytest.mark.parametrize("join", JOINS)
@settings(max_examples=25, deadline=None)
@given(changes=st.lists(st.none() | CHANGE, max_size=12), partitions=st.integers(1, 4))
def test_the_core_makes_the_same_messages(
    join: str, changes: list[tuple[int, Any, Any, int, str] | None], partitions: int
) -> None:
    values = [None if change is None else value_of(*change) for change in changes]
    native, python = both(router_of(join, partitions), records_of(values))
    assert by_partition(native.messages) == by_partition(python.messages)
    assert (native.records, native.error, native.native) == (len(values), None, len(python.messages))


ROW = {"id": 1, "user_id": 7, "total": 2.5, "note": "x"}
GOOD = value_of(1, None, ROW, 3, "write")


def left_out() -> bytes:
    change = envelope(ROW, ROW)
    change["source"]["left_out"] = ["before"]
    return wire.header(1) + encode(SCHEMAS[1], change)


@pytest.mark.parametrize(
    "bad",
    [
        GOOD[:-1],
        GOOD + b"\x00",
        GOOD[: wire.HEADER_SIZE],
        b"\x01" + GOOD[1:],
        GOOD.replace(b"write", b"wr\xffte"),
        wire.header(3) + GOOD[wire.HEADER_SIZE :],
        left_out(),
    ],
    ids=["short", "long", "empty", "no header", "no text", "another type", "left out"],
)
def test_a_bad_message_is_found_after_those_before_it(bad: bytes) -> None:
    """They are routed, and the error names its offset."""
    native, python = both(router_of("inner"), records_of([GOOD, None, bad, GOOD]))
    assert str(native.error) == str(python.error)
    assert native._replace(error=None) == python._replace(error=None)
    assert native.error is not None
    assert "offset 16 of" in native.error.problem
    assert (native.records, len(native.messages)) == (2, 1)

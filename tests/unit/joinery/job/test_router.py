"""The native core and the Python code route the same messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdc_native
from cdc_common.messages import wire
from joinery.job.router import Router
from joinery.records import Stage
from stream_runtime.records import SourcePartition, SourceRecord, TopicShape
from tests.support.joinery import tables
from tests.support.joinery.tables import encode, envelope, plan_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.exactly_once.stateless_task import Transformed
    from stream_runtime.records import Message

pytestmark = pytest.mark.skipif(not cdc_native.is_enabled(), reason="the core is not in use")

OLDER = {"id": "int", "user_id": ["int", "null"]}
SCHEMAS = {
    1: tables.value_schema("orders", tables.ORDERS),
    2: tables.value_schema("orders", OLDER),
    3: tables.value_schema("orders", {**tables.ORDERS, "total": ["null", "string"]}),
}
SHAPE = TopicShape(3, "an-id")
JOINS: dict[str, dict[str, Any]] = {
    "inner": {},
    "left": {
        "input": {
            "o": {"namespace": "shop", "source": "orders"},
            "u": {"namespace": "shop", "source": "users", "optional": True},
        }
    },
    "full": {
        "input": {
            "o": {"namespace": "shop", "source": "orders", "optional": True},
            "u": {"namespace": "shop", "source": "users", "optional": True},
        }
    },
    "twice": {
        "input": {
            "o": {"namespace": "shop", "source": "orders"},
            "u": {"namespace": "shop", "source": "orders", "optional": True},
        },
        "on": ["o.user_id = u.id"],
        "select": ["o.id as order_id", "o.total", "u.user_id as other", "u.note"],
    },
}
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
IMAGES = ("before", "after")


class Schemas:
    """A catalogue that only knows schemas."""

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return SCHEMAS[schema_id]


def router_of(join: str, partitions: int = 3) -> Router:
    plan = plan_of(**JOINS[join])
    shapes = {given.schema.topic: SHAPE for given in plan.inputs}
    stage = Stage(plan, shapes, "internal", TopicShape(partitions, "x"), "target", 1, 2)
    return Router(stage, SourcePartition("cdc.shop.orders", 4), Schemas())  # type: ignore[arg-type]


def value_of(schema_id: int, before: Any, after: Any, sequence: int, cause: str) -> bytes:  # noqa: ANN401 - rows
    change = envelope(before, after, sequence, ts_us=-sequence)
    change["source"]["cause"] = cause
    return wire.header(schema_id) + encode(SCHEMAS[schema_id], change)


def records_of(values: Sequence[bytes | None]) -> list[SourceRecord]:
    return [SourceRecord(b"key", value, 10 + 3 * number) for number, value in enumerate(values)]


def both(router: Router, records: Sequence[SourceRecord]) -> tuple[Transformed, Transformed]:
    return router.route_chunk(records), router.route_one_by_one(records)


def by_partition(messages: Sequence[Message]) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = {}
    for message in messages:
        found.setdefault(message.partition, []).append(message)
    return found


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

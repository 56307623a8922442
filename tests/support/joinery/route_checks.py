"""Routes of changes by the native core, compared with those by the Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdc_common.messages import wire
from joinery.job.router import Router
from joinery.records import Stage
from stream_runtime.records import SourcePartition, SourceRecord, TopicShape
from tests.support.joinery import tables
from tests.support.joinery.tables import encode, envelope, plan_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from stream_runtime.exactly_once.stateless_task import Transformed
    from stream_runtime.records import Message

OLDER = {"id": "int", "user_id": ["int", "null"]}
SCHEMAS = {
    1: tables.value_schema("orders", tables.ORDERS),
    2: tables.value_schema("orders", OLDER),
    3: tables.value_schema("orders", {**tables.ORDERS, "total": ["null", "string"]}),
}
_SHOP = {"namespace": "shop", "source": "orders"}
_USERS = {"namespace": "shop", "source": "users"}
JOINS: dict[str, dict[str, Any]] = {
    "inner": {},
    "left": {"input": {"o": _SHOP, "u": {**_USERS, "optional": True}}},
    "full": {"input": {"o": {**_SHOP, "optional": True}, "u": {**_USERS, "optional": True}}},
    "filtered": {
        "input": {
            "o": {**_SHOP, "where": ["total >= 0.5", "note in ('', 'x')"], "optional": True},
            "u": {**_USERS, "optional": True},
        }
    },
    "filtered twice": {
        "input": {"o": {**_SHOP, "where": ["id <> 1"]}, "u": {**_SHOP, "where": ["note is null"]}},
        "on": ["o.user_id = u.id"],
        "select": ["o.id as order_id", "o.total", "u.user_id as other", "u.note"],
    },
    "twice": {
        "input": {"o": _SHOP, "u": {**_SHOP, "optional": True}},
        "on": ["o.user_id = u.id"],
        "select": ["o.id as order_id", "o.total", "u.user_id as other", "u.note"],
    },
}
_SHAPE = TopicShape(3, "an-id")


class Schemas:
    """A catalogue that only knows schemas. Any other id, of damaged bytes, stands for the first one."""

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return SCHEMAS.get(schema_id, SCHEMAS[1])


def router_of(join: str, partitions: int = 3) -> Router:
    plan = plan_of(**JOINS[join])
    shapes = {given.schema.topic: _SHAPE for given in plan.inputs}
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


def random_value(rng: random.Random) -> bytes:
    """A change of an order."""
    before, after = (rng.choice((None, _order(rng), _order(rng))) for _ in range(2))
    return value_of(rng.choice((1, 1, 1, 2)), before, after, rng.randrange(2**62), rng.choice(("write", "ä", "")))


def check_routes(router: Router, values: Sequence[bytes | None]) -> bool:
    """Both make the same messages, or refuse the same one. Whether the core has made them."""
    native, python = both(router, records_of(values))
    assert by_partition(native.messages) == by_partition(python.messages)
    assert (str(native.error), native.records) == (str(python.error), python.records)
    return native.native > 0


def _order(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.choice((0, 1, -(2**31), 2**31 - 1)),
        "user_id": rng.choice((None, 0, 1, 2)),
        "total": rng.choice((None, 0.5)),
        "note": rng.choice((None, "", "x" * 70)),
    }

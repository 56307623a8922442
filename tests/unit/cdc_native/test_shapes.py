"""The core refuses arguments that only a defect of our Python code could give: it reads nothing beyond its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import cimpl

pytest.importorskip("cdc_native.fold.plan", reason="the native core is not compiled: test_compiled says so")

from cdc_native.fold.changelog import encode_body
from cdc_native.fold.changes import EncodedChange
from cdc_native.fold.fold import Fold
from cdc_native.fold.plan import Plan
from cdc_native.fold.updates import PlainUpdate, decode, in_write_order, mutation_end, of_new_hosts, wrap
from cdc_native.fold.values import encode
from cdc_native.formats.batches import Batch
from cdc_native.formats.keys import component
from cdc_native.formats.mutations import MutationSplitter
from cdc_native.kafka.producer import Producer

if TYPE_CHECKING:
    from collections.abc import Callable

INT = ("integer", 4, 0, ())
KEY = ("signed", 4, False)
SET = ("set_cells", 2, 0, (INT,))
MAP = ("map_cells", 3, 0, (INT, INT))
MESSAGE = (b"k", b"v", b"s", b"t", b"u", True)
PLAN: dict[str, Any] = {
    "table_id": bytes(16),
    "digest": bytes(16),
    "columns": [(b"\x01a", 4, None, None), (b"\x01m", 4, KEY, None)],
    "statics": [(b"\x01s", 4, None, None)],
    "clustering": [(4, KEY, INT)],
    "partition_key": [INT],
    "fields": [
        (True, 0, INT, INT, None, b"before.s", b"after.s"),
        (False, 0, INT, INT, 5, b"before.a", b"after.a"),
        (False, 1, MAP, MAP, None, b"before.m", b"after.m"),
    ],
    "message": MESSAGE,
}
ERRORS = (TypeError, ValueError, OverflowError, IndexError, AttributeError, KeyError)


def plan(**changed: object) -> Plan:
    return Plan(**{**PLAN, **changed})


def fold(**changed: object) -> Fold:
    parts: dict[str, Any] = {
        "overlay": ({}, {}, [], {}.get),
        "timers": ({}, 0, lambda _second, _key: None),
        "states": {},
        "changes": [],
        "budget": Budget(),
        "floor": 0,
        "number": 0,
        "is_in_snapshot": False,
        "read_columns": lambda _number, _is_static: None,
        "encode": bytes,
        "convert": repr,
        **changed,
    }
    return Fold(plan(), **parts)


class Budget:
    rows = bytes = 1 << 40
    applied = 0


class LongerThanItSays(list[object]):
    def __len__(self) -> int:
        return 1


def test_a_right_plan_and_a_right_fold() -> None:
    assert plan().has_messages
    assert not plan(message=None).has_messages
    assert fold().fold([], 0, frozenset(), None) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"table_id": b"short"},
        {"digest": None},
        {"columns": [(b"x", 4, None, None)] * 64},
        {"columns": LongerThanItSays([(b"x", 4, None, None)] * 64)},
        {"columns": [(b"x", 4)]},
        {"columns": [(b"x", 2**63, None, None)]},
        {"columns": None},
        {"clustering": [(4, KEY, INT)] * 17},
        {"clustering": LongerThanItSays([(4, KEY, INT)] * 1000)},
        {"clustering": [(4, ("bigint", 4, False), INT)]},
        {"clustering": [(4, ("uuid", 3, False), INT)]},
        {"clustering": [(4, ("floating", 1, False), INT)]},
        {"clustering": [(4, ("signed", 0, False), INT)]},
        {"clustering": [(4, ("field", -1, False), INT)]},
        {"clustering": [(4, ("odd", 4, False), INT)]},
        {"partition_key": [INT] * 17},
        {"partition_key": [("integer", 9, 0, ())]},
        {"partition_key": [("integer", 0, 0, ())]},
        {"partition_key": [("floating", 16, 0, ())]},
        {"partition_key": [("uuid", 1, 0, ())]},
        {"partition_key": [("boolean", 0, 0, ())]},
        {"partition_key": [("date", 2, 0, ())]},
        {"partition_key": [("map", 0, 0, (INT,))]},
        {"partition_key": [("list", 0, 0, ())]},
        {"partition_key": [("vector", 3, 4, ())]},
        {"partition_key": [("tuple", 0, 0, (INT,) * 1001)]},
        {"fields": [(False, 2, INT, INT, None, b"b", b"a")]},
        {"fields": [(False, -1, INT, INT, None, b"b", b"a")]},
        {"fields": [(True, 1, INT, INT, None, b"b", b"a")]},
        {"fields": [(False, 0, INT, INT, None, None, b"a")]},
        {"fields": [(False, 0, INT, INT, None, b"b", "a")]},
        {"fields": [(False, 1, INT, INT, None, b"b", b"a")]},
        {"fields": [(False, 0, SET, SET, None, b"b", b"a")]},
        {"fields": [(False, 1, ("map_cells", 3, 0, ()), INT, None, b"b", b"a")]},
        {"fields": [(False, 1, ("field_cells", 0, 0, ()), INT, None, b"b", b"a")]},
        {"fields": [(False, 0, INT, INT, None, b"b", b"a")] * 127},
        {"fields": LongerThanItSays([(False, 0, INT, INT, None, b"b", b"a")] * 500)},
        {"message": (None, b"", b"", b"", b"", True)},
        {"message": (b"", b"", b"", b"", True)},
        {"message": ()},
    ],
    ids=repr,
)
def test_plans(changed: dict[str, Any]) -> None:
    with pytest.raises(ERRORS):
        plan(**changed)


def deeper(count: int) -> tuple[object, ...]:
    form: tuple[object, ...] = INT
    for _ in range(count):
        form = ("list", 0, 0, (form,))
    return form


def test_types_within_types() -> None:
    assert plan(partition_key=[deeper(900)])
    with pytest.raises(ValueError, match="too many types"):
        plan(partition_key=[deeper(1000)])


@pytest.mark.parametrize(
    "changed",
    [
        {"overlay": ({}, {}, [])},
        {"overlay": (None, {}, [], None)},
        {"overlay": ({}, {}, None, None)},
        {"timers": (None, 0, None)},
        {"timers": None},
        {"states": None},
        {"changes": ()},
        {"floor": -1},
    ],
    ids=repr,
)
def test_folds(changed: dict[str, Any]) -> None:
    with pytest.raises(ERRORS):
        fold(**changed)


ORDER = {"order": (1, bytes(16), 2, 3, 4)}
UPDATE = wrap(
    type("Update", (), {**ORDER, "partition_key": b"k", "raw": b"", "arrival_ms": 1, "is_snapshot": False})(), b"key"
)


def log(_level: int, _text: str) -> None:
    """Takes librdkafka's log lines, and does nothing with them."""


CALLS: list[Callable[[], object]] = [
    lambda: fold().fold([UPDATE], -1, frozenset(), None),
    lambda: fold().fold([None], 0, frozenset(), None),  # type: ignore[list-item]
    lambda: fold().fold([UPDATE, None], 0, frozenset(), None),  # type: ignore[list-item]
    lambda: fold().prefetch_keys([None], has_statics=True),  # type: ignore[list-item]
    lambda: fold(overlay=({}, {}, [], lambda _key: "text")).expire_rows(b"k", 5, [b"x"]),
    lambda: fold(overlay=({b"x": 5}, {}, [], {}.get), encode=repr).expire_rows(b"k", 5, [b"x"]),
    lambda: fold().expire_rows(b"k", 5, [None]),  # type: ignore[list-item]
    lambda: fold().expire_rows(None, 5, []),  # type: ignore[arg-type]
    lambda: fan_out([(None, b"\x01")]),
    lambda: fan_out([(b"k",)]),
    lambda: fan_out([(b"k", None)]),
    lambda: fan_out([], statics=("text", None, True)),
    lambda: fan_out([], source=(1, None, "", 0, "", False, False)),
    lambda: in_write_order([None], 0, 0),  # type: ignore[list-item]
    lambda: mutation_end([], 0),
    lambda: mutation_end([UPDATE], -1),
    lambda: mutation_end([UPDATE], 5),
    lambda: of_new_hosts(None),  # type: ignore[arg-type]
    lambda: decode(plan(), [(b"", b"")], [], None, [], True),  # type: ignore[arg-type]
    lambda: decode(plan(), [(None, b"")], [1], None, [], True),  # type: ignore[arg-type]
    lambda: decode(plan(), [(b"", None)], [1], None, [], True),  # type: ignore[arg-type]
    lambda: decode(plan(), [()], [1], None, [], True),  # type: ignore[arg-type]
    lambda: decode(plan(), [], [], len, None, True),  # type: ignore[arg-type]
    lambda: decode(plan(), [], [], len, [(b"short", 1, 1)], True),
    lambda: decode(plan(), [], [], len, [(b"h" * 16, 1)], True),  # type: ignore[list-item]
    lambda: wrap(
        type("Update", (), {**ORDER, "partition_key": None, "raw": b"", "arrival_ms": 1, "is_snapshot": False})(), None
    ),
    lambda: wrap(type("Update", (), {"order": (1, bytes(15), 2, 3, 4)})(), None),
    lambda: encode(("uuid", 4, 0, ()), bytes(4)),
    lambda: encode(None, b""),  # type: ignore[arg-type]
    lambda: encode(INT, None),  # type: ignore[arg-type]
    lambda: component(("timeuuid", 4, False), bytes(4)),
    lambda: encode_body(b"", {b"k": "text"}),  # type: ignore[dict-item]
    lambda: encode_body(None, {}),  # type: ignore[arg-type]
    lambda: EncodedChange().partition(0),
    lambda: EncodedChange().partition(3),
    lambda: fold().prefetch_keys([PlainUpdate()], has_statics=True),
    lambda: PlainUpdate().file,
    lambda: fan_out([], statics_size=2**41),
    lambda: fan_out([], statics_size=-1),
    lambda: Producer(cimpl.__file__, {"client.id": "a\0b"}, 1, log),
    lambda: Producer(cimpl.__file__, {"no such property": 1}, 1, log),
    lambda: Producer(cimpl.__file__, {}, 1, log).send("a\0b", 0, None, b"", None),
    lambda: Producer(cimpl.__file__, {}, 1, log).send_batch((None,), Batch(), 0, None),  # type: ignore[arg-type]
    lambda: Producer(cimpl.__file__, {}, 1, log).send_batch((), Batch(), -1, None),
    lambda: Batch().message(0),
    lambda: Batch().message(-1),
    lambda: MutationSplitter([]).walk(Batch(), b"", -1, 0, 0, 0),
    lambda: MutationSplitter([]).walk(Batch(), b"", 0, 0, 0, 2**63 - 1),
    lambda: MutationSplitter([(bytes(16), (4,), ((b"", 4, False, False),), (), b"", b"")]),
    lambda: MutationSplitter([(bytes(16), (4,), (), ((b"a", 4),), b"", b"")]),  # type: ignore[list-item]
    lambda: Plan.__new__(Plan),
    lambda: Fold.__new__(Fold),
]


def fan_out(rows: list[Any], **changed: object) -> object:
    arguments: dict[str, Any] = {
        "deletion": None,
        "source": (1, bytes(16), "", 0, "write", False, False),
        "seconds": (1, 1),
        "statics": (None, None, False),
        "statics_size": 0,
        **changed,
    }
    return fold(encode=repr, read_columns=lambda _number, _is_static: [(0, None)]).fan_out(
        bytes(4), rows, *arguments.values()
    )


@pytest.mark.parametrize("call", CALLS)
def test_arguments(call: Callable[[], object]) -> None:
    with pytest.raises(ERRORS):
        call()


def test_an_update_that_was_not_decoded_is_not_folded() -> None:
    update = PlainUpdate()
    in_write_order([update], -5_000, -5_000)
    assert fold().fold([update], 0, frozenset(), None) == 0


@pytest.mark.parametrize("time", [2**63 - 1, 2**62, -(2**62), -(2**63) + 1, -(2**63)])
def test_a_deletion_of_any_time(time: int) -> None:
    """Damaged facts may have any. An empty row is stored with it."""
    row = b"\x01\x00\x00" + b"\x04\x00" + bytes(4) + b"\x00\x01"  # its liveness alone
    assert fan_out([(b"k", row)], deletion=(time, time)) == (1, -1 if time > 0 else 0)


@pytest.mark.parametrize(
    "value", [b"", b"\x01", b"\x01\xff", b"\x01\x01\xff", bytes(34), b"\x01\0\0" + b"\xff" * 31, b"\xff" * 40]
)
def test_odd_values_of_the_state_are_the_python_codes(value: bytes) -> None:
    for read_columns in (lambda _number, _is_static: None, lambda _number, _is_static: [(0, None), (1, 5)]):
        found = fold(overlay=({}, {}, [], lambda key: value if key == b"x" else None), read_columns=read_columns)
        assert found.expire_rows(b"k", 5, [b"x"]) == 0
    for second in (-(2**63), -1, 0, 2**63 - 1):
        assert fold().expire_rows(b"k", second, [b"x"]) == 0


def test_a_walk_ends_before_the_data() -> None:
    splitter, batch = MutationSplitter([]), Batch()
    for at, until in ((5, -(2**63)), (2**63 - 1, 2**63 - 1), (0, 2**63 - 1), (200, 100)):
        assert splitter.walk(batch, bytes(100), at, until, 2**63 - 1, 0) == at

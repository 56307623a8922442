"""How changes are shown."""

from __future__ import annotations

import datetime as dt
import json

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.render import change_json, change_text, value_text

BEFORE = {"id": 7, "status": "new", "total": {"scale": 2, "value": b"\x10\x9a"}, "note": None}
VALUE = {
    "op": "u",
    "before": BEFORE,
    "after": BEFORE | {"status": "paid"},
    "source": {"row_sequence": 2, "ts_us": 1_000_000, "cause": "write"},
}
CHANGE = Change("shop", "orders", 0, 3, {"id": 7}, VALUE, 1.25)


def test_what_differs_is_marked_and_nulls_are_left_out() -> None:
    assert change_text(CHANGE).plain.splitlines() == [
        "u update shop.orders id=7  (row_sequence 2, 0.25 s after the write)",
        "    before  status='new'*  total=42.50",
        "    after   status='paid'*  total=42.50",
    ]


def test_a_row_that_is_not_there_is_a_dash() -> None:
    change = Change("shop", "orders", 0, 3, {"id": 7}, VALUE | {"op": "d", "after": None}, 1.25)
    assert change_text(change, timing=False).plain.splitlines() == [
        "d delete shop.orders id=7  (row_sequence 2)",
        "    before  status='new'  total=42.50",
        "    after   -",
    ]


def test_what_expires_and_what_arrived_too_late_say_so() -> None:
    for cause, words in (("expiry", "expired"), ("expired_write", "written with a TTL that has passed")):
        value = VALUE | {"source": {"row_sequence": 2, "ts_us": 1_000_000, "cause": cause}}
        first, *_ = change_text(Change("shop", "orders", 0, 3, {"id": 7}, value, 1.25)).plain.splitlines()
        assert first == f"u update shop.orders id=7  (row_sequence 2, {words})"


def test_json_is_one_object_with_key_and_envelope() -> None:
    said = json.loads(change_json(CHANGE))
    assert (said["table"], said["key"], said["op"], said["after"]["status"]) == ("shop.orders", {"id": 7}, "u", "paid")
    tombstone = json.loads(change_json(Change("shop", "orders", 0, 4, {"id": 7}, None, 1.25)))
    assert tombstone == {
        "table": "shop.orders",
        "key": {"id": 7},
        "op": None,
        "before": None,
        "after": None,
        "source": None,
    }


def test_values_are_shown_briefly() -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    shown = value_text({"when": moment, "day": moment.date(), "raw": b"\x01", "list": ["a", None, 1.5]})
    assert shown == "{when: 2026-01-02 03:04:05, day: 2026-01-02, raw: 0x01, list: ['a', null, 1.5]}"

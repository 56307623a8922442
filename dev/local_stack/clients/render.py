"""Show a change: coloured on a terminal, the same words without colours elsewhere."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

from rich.text import Text

from dev.local_stack.clients.history import latency, same

if TYPE_CHECKING:
    from dev.local_stack.clients.change import Change, Record

OPERATIONS = {
    "c": ("insert", "bold green"),
    "u": ("update", "bold yellow"),
    "d": ("delete", "bold red"),
    "r": ("read", "bold cyan"),
}
LATE_SECONDS = 600.0  # a write older than this was given its timestamp
BEFORE_STYLE = "red"
AFTER_STYLE = "green"


def change_text(change: Change, *, timing: bool = True) -> Text:
    """Three lines: operation and key, the row before, the row after; what differs between them stands out."""
    if change.value is None:
        return Text.assemble(("tombstone ", "dim"), f"{change.name} ", _record(change.key))
    word, style = OPERATIONS.get(change.value["op"], (change.value["op"], "bold"))
    source = change.value["source"]
    facts = f"  (row_sequence {source['row_sequence']}"
    if source["cause"] == "expiry":
        facts += ", expired"
    elif source["cause"] == "expired_write":
        facts += ", written with a TTL that has passed"
    elif timing and latency(change) < LATE_SECONDS:
        facts += f", {latency(change):.2f} s after the write"
    text = Text.assemble((f"{change.value['op']} {word} ", style), (change.name, "bold"), " ", _record(change.key))
    text.append(facts + ")", "dim")
    before, after = change.value["before"], change.value["after"]
    text.append("\n    before  ")
    text.append_text(_image(before, after, change.key, BEFORE_STYLE))
    text.append("\n    after   ")
    text.append_text(_image(after, before, change.key, AFTER_STYLE))
    return text


def change_json(change: Change) -> str:
    """One JSON object: table, key, and op, before, after and source (all null for a tombstone)."""
    value = change.value or {}
    fields = {name: value.get(name) for name in ("op", "before", "after", "source")}
    return json.dumps({"table": change.name, "key": change.key, **fields}, default=plain, ensure_ascii=False)


def plain(value: object) -> object:
    """Turn values that JSON lacks into text or numbers that say the same."""
    match value:
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            return "0x" + value.hex()
    raise TypeError(type(value).__name__)


def value_text(value: object) -> str:
    match value:
        case None:
            return "null"
        case dict() if value.keys() == {"scale", "value"}:
            return str(Decimal(int.from_bytes(value["value"], "big", signed=True)).scaleb(-value["scale"]))
        case dict():
            return "{" + ", ".join(f"{name}: {value_text(item)}" for name, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(value_text(item) for item in value) + "]"
    return _scalar_text(value)


def _scalar_text(value: object) -> str:
    match value:
        case str():
            return "'" + value + "'"
        case dt.datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case dt.date() | Decimal() | UUID() | bytes():
            return str(plain(value))
    return str(value)


def _record(record: Record) -> str:
    return " ".join(f"{name}={value_text(value)}" for name, value in record.items())


def _image(image: Record | None, other: Record | None, key: Record, style: str) -> Text:
    """A row's image without its key; columns that are null on both sides are left out."""
    if image is None:
        return Text("-", "dim")
    text = Text()
    for name, value in image.items():
        differs = other is not None and not same(value, other.get(name))
        if name not in key and (value is not None or differs):
            text.append("  " if text else "")
            text.append(f"{name}=", "dim" if not differs else style)
            text.append(value_text(value), f"bold {style}" if differs else "" if other is not None else style)
            text.append("*" if differs else "", style)
    return text

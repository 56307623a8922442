"""Output of commands: lines of JSON, and times as people read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# DEL and the C1 controls, which JSON allows as they are, and which some terminals obey.
_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


def json_line(value: Mapping[str, Any]) -> bytes:
    """One line of JSON in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_CONTROLS).encode() + b"\n"


def iso_time(microseconds: int) -> str | None:
    """ISO 8601 in UTC, in milliseconds; None where a year is not of four digits."""
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(" ", "milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None

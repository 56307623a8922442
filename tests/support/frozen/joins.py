"""Frozen vectors of joins: messages of the internal topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joinery.internal.codec import decode, encode
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from tests.support.frozen.vectors import Format, Vector, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_ORIGIN = Origin(1, 2, 3, 4, 1_795_000_000_000_000, "write")
_ROUTED = {
    "put": Routed(Kind.PUT, Row(Group(b"\x02\x0e"), b"\x02", b"\x02\x06Ada"), _ORIGIN),
    "update": Routed(Kind.UPDATE, Row(Group(b"\x02\x0e"), b"", b"\x00"), _ORIGIN, may_miss=True),
    "retract": Routed(Kind.RETRACT, Row(Group(b"\x00", b"\x01\x02"), b"\x02", b""), _ORIGIN, has_more=True),
}


def make_messages() -> list[Vector]:
    vectors = []
    for name, routed in _ROUTED.items():
        key, value = encode(routed)
        vectors += [Vector(f"{name} key", key, key.hex()), Vector(name, value, plain(routed))]
    return vectors


def read_messages(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    return data[name].hex() if name.endswith(" key") else plain(decode(data[f"{name} key"], data[name]))


FORMATS = (Format("joined-messages", ("joinery/internal/codec.py",), make_messages, read_messages),)

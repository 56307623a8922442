"""Frozen vectors of joins: messages of the internal topic, and states with what a later release makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdc_common.messages.avro.encoding import encode_bytes
from cdc_common.messages.avro.skipping import read_long
from joinery.internal.codec import decode, encode
from joinery.job.join_report import is_of, with_totals
from joinery.joining.join import join_chunk
from joinery.joining.records import Group, Kind, Origin, Routed, Row, Rule, Sizes
from tests.support.frozen.vectors import Format, Vector, plain
from tests.support.materializer.memory_state import MemoryState

if TYPE_CHECKING:
    from collections.abc import Mapping

_ORIGIN = Origin(1, 2, 3, 4, 1_795_000_000_000_000, "write")
_ROUTED = {
    "put": Routed(Kind.PUT, Row(Group(b"\x02\x0e"), b"\x02", b"\x02\x06Ada"), _ORIGIN),
    "update": Routed(Kind.UPDATE, Row(Group(b"\x02\x0e"), b"", b"\x00"), _ORIGIN, may_miss=True),
    "numbered": Routed(Kind.PUT, Row(Group(b"\x02\x0e"), b"\x02", b"\x00"), _ORIGIN, definition=0xABCDEF),
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


_RULE = Rule((False, True), (b"\x00", b""), (b"\x00", b"\x00"), 100, 0xABCDEF)
_USER = Routed(Kind.PUT, Row(Group(b"\x02\x0e"), b"", b"\x02\x06Ada"), Origin(1, 0, 7, 1, 0, "write"))
_ORDERS = [
    Routed(Kind.PUT, Row(Group(b"\x02\x0e"), bytes((2, 2 * number)), b"\x02\x09"), Origin(0, 1, number, 3, 0, "write"))
    for number in range(3)
]
_ALL = 1 << 20  # bytes of changes
_STATES = {"whole": [], "in the middle of a message": [_USER], "of an older release": []}


def make_states() -> list[Vector]:
    """Three orders, which wait for their user. In the middle of a message the user has met one of them."""
    vectors = []
    for name, more in _STATES.items():
        state = MemoryState()
        for offset, routed in enumerate([*_ORDERS, *more]):
            made = join_chunk(_RULE, state, [(offset, routed)], 1 if routed is _USER else _ALL)
            writes = made.writes
            if name != "of an older release":
                writes, _ = with_totals(state, _RULE, writes, made.sizes)
            state.apply(writes)
        data = b"".join(encode_bytes(part) for pair in sorted(state.data.items()) for part in pair)
        vectors.append(Vector(name, data, _meaning(data)))
    return vectors


def _meaning(data: bytes) -> Any:  # noqa: ANN401 - JSON
    """The rows of each input, and the changes that the user causes: those that were not sent yet."""
    state, at, parts = MemoryState(), 0, []
    while at < len(data):
        size, at = read_long(data, at)
        parts.append(data[at : at + size])
        at += size
    state.data = dict(zip(parts[::2], parts[1::2], strict=True))
    assert is_of(state, _RULE)
    _, report = with_totals(state, _RULE, {}, Sizes((), (), 0))
    made = join_chunk(_RULE, state, [(len(_ORDERS), _USER)], _ALL)
    keys = [[change.key.hex(), change.op, change.offset] for change in made.changes]
    return {"rows": list(report.rows), "changes": keys}


def read_states(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    return _meaning(data[name])


FORMATS = (
    Format("joined-messages", ("joinery/internal/codec.py",), make_messages, read_messages),
    Format("joined-states", (), make_states, read_states),
)

"""The start of a join: rows are loaded without output, then all joined rows are sent once, in parts.

Each source partition sends a mark once all messages are routed that it had. With the last mark, all joined rows are
sent. They are changes of that mark, which come in parts like those of any other message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.skipping import read_long
from joinery.joining.combinations import place_of
from joinery.joining.groups import groups_of
from joinery.joining.layout import (
    AFTER_MARKED,
    BEGUN,
    COUNTS,
    MARKED,
    PHASE,
    ROWS,
    SENDING,
    counts_key,
    decode_sending,
    encode_sending,
    marked_key,
)
from joinery.joining.records import Joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from joinery.joining.combinations import Combination
    from joinery.joining.overlay import Overlay
    from joinery.joining.records import Group, Routed, Rule
    from stream_runtime.state.reader import StateReader


def has_begun(state: StateReader | Overlay) -> bool:
    """Whether changes of joined rows are sent. A state without a phase is that of an older release, or of a test."""
    return state.get(PHASE) in (None, BEGUN)


def is_empty(state: StateReader) -> bool:
    """Whether nothing was joined yet."""
    return next(iter(state.scan(b"m", b"s")), None) is None


def is_marked(overlay: Overlay, number: int, partition: int) -> bool:
    """Whether all messages are joined that the source partition had at the start."""
    return overlay.get(marked_key(number, partition)) is not None


def mark(overlay: Overlay, state: StateReader, routed: Routed, inputs: int) -> bool:
    """Note that a source partition is loaded, and return whether all are."""
    own = marked_key(routed.origin.input, routed.origin.partition)
    overlay.put(own, routed.row.columns)
    marked = {**dict(state.scan(MARKED, AFTER_MARKED)), own: routed.row.columns}
    counts = [[value for key, value in marked.items() if key[len(MARKED)] == number] for number in range(inputs)]
    return all(values and len(values) >= read_long(values[0], 0)[0] for values in counts)


def snapshot(
    rule: Rule, state: StateReader, overlay: Overlay, offset: int, routed: Routed
) -> Iterator[tuple[bytes, Joined]]:
    """Each joined row that was not sent yet, after the phase in which it is the last one that was."""
    phase = overlay.get(PHASE) or b""
    start, after = decode_sending(phase) if phase.startswith(SENDING) else (COUNTS, None)
    for found in groups_of(state, len(rule.optional), ROWS + start[len(COUNTS) :]):
        if rule.has_rows(found.counts):
            key = counts_key(found.group)
            for combination in found.combinations(overlay, after if key == start else None):
                sending = encode_sending(key, place_of(combination))
                yield sending, _joined(rule, found.group, combination, offset, routed)


class JoinedRow(NamedTuple):
    """A joined row of a state."""

    # Its key.
    key: bytes
    # Its Avro bytes.
    row: bytes
    # The sequence of each input's row; None for an input that has no row here.
    sequences: tuple[int | None, ...]


def joined_rows(rule: Rule, state: StateReader, overlay: Overlay) -> Iterator[JoinedRow]:
    """All joined rows of a state, in an order that depends on the state alone."""
    for found in groups_of(state, len(rule.optional), ROWS):
        if rule.has_rows(found.counts):
            for combination in found.combinations(overlay, None):
                yield _row(rule, found.group, combination)


def _row(rule: Rule, group: Group, combination: Combination) -> JoinedRow:
    idents = zip(combination, rule.absent_idents, strict=True)
    columns = zip(combination, rule.absent_columns, strict=True)
    key = group.key + b"".join(absent if row is None else row.ident for row, absent in idents)
    after = key + b"".join(absent if row is None else row.columns for row, absent in columns)
    return JoinedRow(key, after, tuple(None if row is None else row.sequence for row in combination))


def _joined(rule: Rule, group: Group, combination: Combination, offset: int, routed: Routed) -> Joined:
    key, after, sequences = _row(rule, group, combination)
    return Joined(key, None, after, sequences, offset, routed.origin, is_snapshot=True)

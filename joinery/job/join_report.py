"""The part of a report about a state of a join: how many rows it has, and how large its groups are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.avro.skipping import read_long
from joinery.joining.layout import AFTER_COUNTS, BEGUN, COUNTS, DEFINITION, PHASE, TOTALS, decode_counts, encode_counts
from joinery.joining.records import Sizes

if TYPE_CHECKING:
    from joinery.joining.records import Rule
    from stream_runtime.state.reader import StateReader


class JoinReport(NamedTuple):
    """The part of a report (stream_runtime.exactly_once.report.Part)."""

    # How many rows of each input the state has.
    rows: tuple[int, ...]
    # The sizes of the groups that messages have met.
    sizes: Sizes
    # Whether the inputs are being loaded, and no joined row was sent yet.
    is_loading: bool

    def and_then(self, later: JoinReport) -> JoinReport:
        """Both, one after the other."""
        return later._replace(sizes=self.sizes.and_then(later.sizes))


def is_of(state: StateReader, rule: Rule) -> bool:
    """Whether the rows of a state are of this definition of the join."""
    stored = state.get(DEFINITION)
    return stored is None or read_long(stored, 0)[0] == rule.definition


def with_totals(
    state: StateReader, rule: Rule, writes: dict[bytes, bytes | None], sizes: Sizes
) -> tuple[dict[bytes, bytes | None], JoinReport]:
    """The writes with the number of rows of each input after them, and with the definition; and the report."""
    inputs = len(rule.optional)
    if state.get(DEFINITION) is None:
        writes = {**writes, DEFINITION: encode_long(rule.definition)}
    rows = tuple(map(sum, zip(_totals(state, inputs), sizes.added or (0,) * inputs, strict=True)))
    phase = writes[PHASE] if PHASE in writes else state.get(PHASE)
    report = JoinReport(rows, sizes, is_loading=phase not in (None, BEGUN))
    return ({**writes, TOTALS: encode_counts(rows)} if any(sizes.added) else writes), report


def _totals(state: StateReader, inputs: int) -> tuple[int, ...]:
    """The number of rows of each input. A state of an older release does not have it: its groups are counted once."""
    stored = state.get(TOTALS)
    if stored is not None:
        return decode_counts(stored, inputs)
    totals = [0] * inputs
    for _, value in state.scan(COUNTS, AFTER_COUNTS):
        for number, count in enumerate(decode_counts(value, inputs)):
            totals[number] += count
    return tuple(totals)

"""Compares the target's rows of a cut with the joined rows of the inputs' rows, in one scratch state."""

from __future__ import annotations

import io
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from fastavro import parse_schema, schemaless_reader

from cdc_common.messages.avro.skipping import skipper
from joinery.audit.scratch import OutputRow
from joinery.joining.overlay import Overlay
from joinery.joining.start import JoinedRow, joined_rows
from joinery.planning.joined_schema import key_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from joinery.audit.scratch import Scratch
    from joinery.joining.records import Rule
    from joinery.planning.plan import JoinPlan

_AT_ONCE = 1000


class Difference(NamedTuple):
    """A joined row that the target should have otherwise."""

    # The bytes of its key.
    key: bytes
    # The joined row of the inputs' rows; None if they have none.
    expected: JoinedRow | None
    # The target's row; None if it has none.
    found: OutputRow | None


class Comparison:
    """Compares the rows of one partition. The target's rows are taken out of the scratch state.

    rows: how many joined rows the inputs have, once it is done.
    """

    def __init__(self, rule: Rule, scratch: Scratch) -> None:
        self.rows = 0
        self._rule = rule
        self._scratch = scratch

    def differences(self) -> Iterator[Difference]:
        """Each difference."""
        state = self._scratch.state
        expected = joined_rows(self._rule, state, Overlay(state, len(self._rule.optional)))
        while part := list(islice(expected, _AT_ONCE)):
            self.rows += len(part)
            found = self._scratch.take_output([row.key for row in part])
            for row, output in zip(part, found, strict=True):
                if output is None or output.row != row.row:
                    yield Difference(row.key, row, output)
        while left := list(islice(self._scratch.output(), _AT_ONCE)):
            self._scratch.put_output(dict.fromkeys(key for key, _ in left))
            yield from (Difference(key, None, output) for key, output in left)


class Described(NamedTuple):
    """A difference in words."""

    # The kind: missing, other values, or not in the inputs.
    kind: str
    # The values of the key's columns.
    key: dict[str, Any]
    # The columns that have other values.
    columns: tuple[str, ...]


class Describer:
    """Describes the differences of a join: the values of keys, and the names of columns."""

    def __init__(self, plan: JoinPlan) -> None:
        self._keys = parse_schema(key_schema(plan))
        named = {name: tree for given in plan.inputs for name, tree in given.schema.named.items()}
        self._columns = [(field["name"], skipper(field["type"], named)) for field in plan.row_fields]

    def describe(self, difference: Difference) -> Described:
        """The difference in words."""
        key: Any = schemaless_reader(io.BytesIO(difference.key), self._keys, None)
        if difference.found is None:
            return Described("missing", key, ())
        if difference.expected is None:
            return Described("not in the inputs", key, ())
        wanted, found = self._split(difference.expected.row), self._split(difference.found.row)
        return Described("other values", key, tuple(name for name, value in wanted.items() if found[name] != value))

    def _split(self, row: bytes) -> dict[str, bytes]:
        """The bytes of each column."""
        found, start = {}, 0
        for name, skip in self._columns:
            end = skip(row, start)
            found[name] = row[start:end]
            start = end
        return found

"""Folds the messages of a target up to a cut."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple

from cachetools import LRUCache
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from cdc_common.messages import wire
from cdc_common.messages.avro.schemas import definition, to_tree
from cdc_common.messages.avro.skipping import read_long, skipper
from joinery.audit.scratch import OutputRow
from joinery.planning.joined_schema import value_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from joinery.audit.scratch import Scratch
    from joinery.catalogue import Catalogue
    from joinery.planning.plan import JoinPlan
    from stream_runtime.records import SourceRecord

_MOST_SCHEMAS = 100


class _Change(NamedTuple):
    """A message of the target."""

    # The offset in the internal topic of the message that is its cause.
    sequence: int
    # The joined row after it, in Avro bytes of the plan's schema; None if it is deleted.
    after: bytes | None


class TargetFold:
    """Folds one partition of a target into a scratch state: the changes that messages before the cut have caused."""

    def __init__(self, plan: JoinPlan, catalogue: Catalogue, cut: int, scratch: Scratch) -> None:
        self._catalogue = catalogue
        self._cut = cut
        self._scratch = scratch
        self._schema = value_schema(plan)
        self._cutters: LRUCache[int, _ChangeCutter] = LRUCache(_MOST_SCHEMAS)
        self._deleted: bytes | None = None  # the key of the last message, if that was a deletion

    def take(self, records: Iterable[SourceRecord]) -> None:
        """Take messages, in order."""
        made: dict[bytes, OutputRow | None] = {}
        for record in records:
            key = (record.key or b"")[wire.HEADER_SIZE :]
            if record.value is None:
                if key != self._deleted:  # a consumer that takes tombstones alone loses the row
                    made[key] = None
                self._deleted = None
                continue
            change = self._cutter(wire.schema_id(record.value)).cut(record.value[wire.HEADER_SIZE :])
            self._deleted = key if change.after is None else None
            if change.sequence < self._cut:
                made[key] = None if change.after is None else OutputRow(record.offset, change.after)
        self._scratch.put_output(made)

    def _cutter(self, schema_id: int) -> _ChangeCutter:
        found = self._cutters.get(schema_id)
        if found is None:
            found = self._cutters[schema_id] = _ChangeCutter(self._catalogue.schema(schema_id), self._schema)
        return found


class _ChangeCutter:
    """Cuts changes out of messages of one schema. Rows of an older one are read under the newest."""

    def __init__(self, written: Any, wanted: Any) -> None:  # noqa: ANN401 - JSON
        envelope, named = to_tree(written)
        self._fields = [field["name"] for field in envelope["fields"]]
        self._skips = [skipper(field["type"], named) for field in envelope["fields"]]
        source = next(definition(field["type"], named) for field in envelope["fields"] if field["name"] == "source")
        self._source_fields = [field["name"] for field in source["fields"]]
        self._source_skips = [skipper(field["type"], named) for field in source["fields"]]
        self._resolved = None if written == wanted else _Resolved(written, wanted)

    def cut(self, value: bytes) -> _Change:
        places = _places(value, 0, self._fields, self._skips)
        source = _places(value, places["source"][0], self._source_fields, self._source_skips)
        sequence, _ = read_long(value, source["row_sequence"][0])
        start, end = places["after"]
        branch, start = read_long(value, start)
        if not branch:
            return _Change(sequence, None)
        return _Change(sequence, value[start:end] if self._resolved is None else self._resolved.row(value))


class _Resolved:
    """Rows of an older schema under the newest one."""

    def __init__(self, written: Any, wanted: Any) -> None:  # noqa: ANN401 - JSON
        self._written, self._wanted = parse_schema(written), parse_schema(wanted)
        self._row = parse_schema(next(branch for branch in wanted["fields"][0]["type"] if branch != "null"))

    def row(self, value: bytes) -> bytes:
        """The row after a change."""
        found: Any = schemaless_reader(io.BytesIO(value), self._written, self._wanted)
        made = io.BytesIO()
        schemaless_writer(made, self._row, found["after"])
        return made.getvalue()


def _places(value: bytes, start: int, names: list[str], skips: list[Any]) -> dict[str, tuple[int, int]]:
    """The place of each field of a record."""
    found = {}
    for name, skip in zip(names, skips, strict=True):
        end = skip(value, start)
        found[name] = start, end
        start = end
    return found

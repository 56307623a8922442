"""Every chunk folded by the Python code alone and with the native core: all that comes out must be the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.schema.compact_tables import as_selected
from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from cdc_common.messages.envelope import ChangeEncoder
from cdc_common.messages.tables import canonical, digest
from materializer.fold import chunk as chunk_module
from materializer.fold.chunk_fold import ChunkFold
from materializer.fold.net_changes import as_row_change
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.settings import FoldSettings
    from stream_runtime.state.reader import StateReader

TS_MS = 1_760_000_000_123
_fold_chunk = chunk_module.fold_chunk
_ENCODERS: dict[tuple[bytes, TypeForms], ChangeEncoder] = {}


class DifferenceError(AssertionError):
    """The two folds differ. No other AssertionError: that would be the Python code's own on a damaged state."""


class Counts:
    """The number of records that were folded, and how many of them by the core."""

    def __init__(self) -> None:
        self.records = self.native = 0


def fold_both(
    reader: StateReader,
    records: Sequence[RawRecord],
    catalog: TableCatalog,
    settings: FoldSettings = DEFAULT_FOLD_SETTINGS,
    *,
    counts: Counts | None = None,
    is_state_damaged: bool = False,
) -> ChunkResult:
    """Fold in place of fold_chunk; DifferenceError if the two folds differ. is_state_damaged: perhaps in several
    places; each fold may find another one first.
    """
    encoders = {key[1]: encoder_of(table) for key, table in catalog.schemas.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkFold, "_may_be_native", False)
        expected = _outcome(reader, records, catalog, settings)
    found = _outcome(reader, records, catalog, settings)
    encoded = _outcome(reader, records, replace(catalog, encoders=encoders, _plans={}), settings)
    as_default = {key[1]: encoder_of(table, DEFAULT_FORMS) for key, table in catalog.schemas.items()}
    in_forms = _outcome(reader, records, replace(catalog, encoders=as_default, _plans={}), settings)
    for other in (found, encoded, in_forms):
        if isinstance(expected, Exception) or isinstance(other, Exception):
            check_equal(isinstance(other, Exception), isinstance(expected, Exception))
            if not is_state_damaged:
                check_equal(repr(other), repr(expected))
            continue
        check_equal(other.writes, expected.writes)
        check_equal(other._replace(changes=[], native=0), expected._replace(changes=[]))
        check_equal([as_row_change(change) for change in other.changes], expected.changes)
    if isinstance(expected, Exception):
        raise expected
    assert not isinstance(encoded, Exception)
    assert not isinstance(in_forms, Exception)
    check_messages(encoded, encoders)
    check_messages(in_forms, as_default)
    if counts is not None:
        counts.records += len(records) - expected.left
        counts.native += encoded.native
    return expected


def check_equal(found: object, expected: object) -> None:
    if found != expected:
        raise DifferenceError(f"the core: {found!r}\nthe Python code: {expected!r}")


def check_messages(result: ChunkResult, encoders: dict[bytes, ChangeEncoder]) -> None:
    """The core's messages are those of the encoder."""
    for change in result.changes:
        if hasattr(change, "row_change"):
            row_change = change.row_change()
            message = change.key, change.value + encode_long(TS_MS), change.empty, change.unreadable
            check_equal(message, encoders[row_change.schema].encode(row_change, TS_MS))
            check_equal((change.op, change.row_sequence), (row_change.op, row_change.row_sequence))


def encoder_of(table: TableMetadata, forms: TypeForms = EXACT) -> ChangeEncoder:
    key = digest(canonical(table)), forms
    if key not in _ENCODERS:
        _ENCODERS[key] = ChangeEncoder(as_selected(table), "cdc", 1, 2, "cluster", forms=forms)
    return _ENCODERS[key]


def _outcome(
    reader: StateReader, records: Sequence[RawRecord], catalog: TableCatalog, settings: FoldSettings
) -> ChunkResult | Exception:
    try:
        return _fold_chunk(reader, records, catalog, settings)
    except Exception as error:  # noqa: BLE001 - both folds must raise the same
        return error


__all__ = ["Counts", "DifferenceError", "check_messages", "encoder_of", "fold_both"]

"""How messages of a schema become rows of the topic's table: the schema's Arrow type, and the numbers of its columns.

The lists of columns of a table are files that are stored once each, with rising numbers. Whoever needs a column that
the newest list does not have stores the next one. A schema whose columns do not fit gets another schema version, with
lists of its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import structlog

from archive.faults import subject_missing
from archive.records import SchemaPlan
from archive.writer.aliases import with_aliases
from archive.writer.columns import (
    BASE,
    BASE_COLUMNS,
    Columns,
    IncompatibleError,
    NotInTableError,
    stored_schema,
)
from archive.writer.json_rows import JsonTable
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.errors.codes import Code
from cdc_common.messages.avro.forms import NotNativeError, form_of
from cdc_common.messages.avro.schemas import to_tree
from cdc_native.avro.columns import Table
from cdc_native.avro.program import Program

if TYPE_CHECKING:
    from archive.records import PlanForm
    from stream_runtime.stores.store import Store

_logger = structlog.get_logger(__name__)
ENVELOPE_FIELDS = ("before", "after", "source", "op")
_ENVELOPE = pa.schema([("_op", pa.string()), ("_row_sequence", pa.int64()), ("_ts_us", pa.int64())])


class Registry(Protocol):
    """The requests to the schema registry: cdc_common.clients.registry.confluent.RegistryClient."""

    def get(self, schema_id: int, /) -> Any:  # noqa: ANN401 - JSON
        """The schema of an id, as JSON. CdcError."""
        ...

    def latest(self, subject: str, /) -> tuple[int, Any] | None:
        """The id and the schema of a subject's newest version; None if it has none. CdcError."""
        ...


class Layout(NamedTuple):
    """The columns of a schema's rows."""

    # The plan of the schema.
    plan: SchemaPlan
    # The decoder of messages; None for rows of bytes.
    table: Table | JsonTable | None
    # All columns of the rows, as they are stored.
    schema: pa.Schema
    # Whether messages are change messages, whose rows also have `_op`, `_row_sequence` and `_ts_us`.
    is_envelope: bool = False


class SchemaPlans:
    """The plans of a table's schemas. CdcError of the store or the registry."""

    def __init__(self, store: Store, registry: Registry, table: str) -> None:
        self._store = store
        self._registry = registry
        self._folder = columns_folder(table)
        self._new_versions = 0
        self._layouts: dict[tuple[int, SchemaPlan | None, bool], Layout] = {}

    def layout(self, schema_id: int, pinned: SchemaPlan | None = None) -> Layout:
        """The layout of a schema: by a plan that is made, or by the `pinned` one, which an intent keeps."""
        return self._cached(schema_id, pinned, is_json=False)

    def take_new_versions(self) -> int:
        """The number of schema versions that were begun here since the last call."""
        count, self._new_versions = self._new_versions, 0
        return count

    def bytes_layout(self, schema_id: int = -1, form: PlanForm = "bytes") -> Layout:
        """The layout of rows of bytes: of a schema, or of messages without one."""
        return Layout(SchemaPlan(schema_id, form, 1, 0), None, BASE_COLUMNS.numbered(BASE))

    def json_layout(self, subject: str) -> Layout:
        """The layout of JSON of the newest schema of a subject. CdcError if it has none."""
        found = self._registry.latest(subject)
        if found is None:
            raise subject_missing(self._folder.rpartition("/")[2], subject)
        return self._cached(found[0], None, is_json=True)

    def _cached(self, schema_id: int, pinned: SchemaPlan | None, *, is_json: bool) -> Layout:
        """A schema that the registry does not have may appear there, so the next cut asks again."""
        key = schema_id, pinned, is_json
        if key in self._layouts:
            return self._layouts[key]
        layout = self._make(schema_id, pinned, is_json=is_json)
        if layout.plan.form != "unknown":
            self._layouts[key] = layout
        return layout

    def _make(self, schema_id: int, pinned: SchemaPlan | None, *, is_json: bool) -> Layout:
        if pinned is not None and pinned.form in {"bytes", "unknown"}:
            return self.bytes_layout(schema_id, pinned.form)
        is_json |= pinned is not None and pinned.form == "json"
        try:
            tree, named = to_tree(self._registry.get(schema_id))
            table: Table | JsonTable = Table(Program(form_of(tree, named)))
            payload = with_aliases(pa.schema(table), tree, named)
            if is_json:
                table = JsonTable(payload)
                payload = table.schema
            is_envelope = not is_json and _is_envelope(payload)
            schema = _file_schema(payload, is_envelope=is_envelope)
        except RegistryRequestError as error:
            if not error.lacks_schema:
                raise
            return self.bytes_layout(schema_id, "unknown")
        except (NotNativeError, ValueError, NotInTableError) as error:
            reason = getattr(error, "reason", str(error))
            _logger.warning("schema kept as bytes", schema_id=schema_id, folder=self._folder, reason=reason)
            return self.bytes_layout(schema_id)
        if pinned is None:
            plan, columns = self._plan(schema_id, schema, "json" if is_json else "avro")
        else:
            kept = self._read(pinned.version, pinned.columns)
            assert kept is not None, f"{self._folder} has lost the columns {pinned}"
            plan, columns = pinned, kept
        return Layout(plan, table, columns.numbered(schema), is_envelope)

    def _plan(self, schema_id: int, schema: pa.Schema, form: PlanForm) -> tuple[SchemaPlan, Columns]:
        version = 1
        while True:
            try:
                number, columns = self._ensure(version, schema)
            except IncompatibleError as error:
                version += 1
                problem, code = error.reason, Code.ARCHIVE_VERSION.text
                _logger.warning(
                    "schema needs another version", code=code, schema_id=schema_id, version=version, problem=problem
                )
            else:
                return SchemaPlan(schema_id, form, version, number), columns

    def _ensure(self, version: int, schema: pa.Schema) -> tuple[int, Columns]:
        """The newest list of columns of a version, with the schema's. IncompatibleError."""
        while True:
            number, columns = newest_columns(self._store, self._folder, version)
            merged = columns.merged(schema)
            if merged == columns:
                return number, columns
            data = json.dumps(merged.as_json(), ensure_ascii=False).encode()
            if self._store.put_new_bytes(_path(self._folder, version, number + 1), data):
                self._new_versions += version > 1 and number == 0
                return number + 1, merged

    def _read(self, version: int, number: int) -> Columns | None:
        return read_columns(self._store, self._folder, version, number)


def columns_folder(table: str) -> str:
    """The folder of a table's lists of columns."""
    return f"_archive/columns/{table}"


def read_columns(store: Store, folder: str, version: int, number: int) -> Columns | None:
    """A list of columns; None if there is none. Every table has the list 0."""
    if number == 0:
        return BASE_COLUMNS
    found = store.read(_path(folder, version, number))
    return None if found is None else Columns.from_json(json.loads(found))


def newest_columns(store: Store, folder: str, version: int) -> tuple[int, Columns]:
    """The newest list of columns of a schema version, and its number."""
    number, columns = 0, BASE_COLUMNS
    while (following := read_columns(store, folder, version, number + 1)) is not None:
        number, columns = number + 1, following
    return number, columns


def _path(folder: str, version: int, number: int) -> str:
    return f"{folder}/{version}-{number:06d}.json"


def _is_envelope(payload: pa.Schema) -> bool:
    if any(payload.get_field_index(name) < 0 for name in ENVELOPE_FIELDS):
        return False
    source, op = payload.field("source").type, payload.field("op").type
    if not pa.types.is_struct(source) or op != pa.string():
        return False
    return all(
        source.get_field_index(name) >= 0 and source.field(name).type == pa.int64()
        for name in ("row_sequence", "ts_us")
    )


def _file_schema(payload: pa.Schema, *, is_envelope: bool) -> pa.Schema:
    """The columns of rows: those of every table, those of envelopes, and the schema's. NotInTableError."""
    own = set(BASE.names) | set(_ENVELOPE.names)
    for name in payload.names:
        if name in own:
            raise NotInTableError(f"it has a field {name}, which is a column of the archive")
    before = [
        field for field in BASE if field.name != "_kafka_value" and not (is_envelope and field.name == "_kafka_key")
    ]
    return pa.schema([*before, *(_ENVELOPE if is_envelope else ()), *stored_schema(payload)])

"""Decides under which schema each record is folded, so that the history does not depend on how far behind the job is.

A raw message names the schema that its publisher knew. The state names the schema that is in force: the one under which
the last record was folded. It only advances, with the first record that was written under a newer schema, whatever the
driver knows by then (decision 0049). A publisher that is behind names a newer schema than the one that a mutation was
written with. Its columns and its write time show that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.raw import CONTROL_KINDS, IMAGE_KINDS, REPAIR_KINDS, TRUNCATION_KINDS
from materializer.fold.row_updates import row_update
from materializer.fold.schema_change import read_shown
from materializer.records import UnreadableError
from materializer.rows.catalog import SchemaId
from materializer.rows.native_plan import type_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.raw import RawMessage
    from materializer.records import RawRecord, RowUpdate
    from materializer.rows.catalog import TableCatalog
    from stream_runtime.state.reader import StateReader

_NEVER_FIRST = CONTROL_KINDS | REPAIR_KINDS | {"gap"}


class SchemaAdvanceError(Exception):
    """The record at `index` and those after it are folded under `schema`, a newer one than those before."""

    def __init__(self, index: int, schema: SchemaId) -> None:
        super().__init__(f"record {index}")
        self.index = index
        self.schema = schema


class SchemaInForce:
    """The schema in force for a state. `catalog`: that of the job, with this schema as its table's newest.

    is_swept: whether all rows are shown under it. has_advanced: whether it is newer than the state's.
    """

    def __init__(self, state: StateReader, catalog: TableCatalog) -> None:
        shown = read_shown(state)
        self.schema = shown[0].schema if shown else None
        self.is_swept = len(shown) <= 1
        self.has_advanced = False
        self._known = catalog
        self._passed: set[SchemaId] = set()  # schemas that are not newer
        self.catalog = catalog if self.schema is None else catalog.as_of(self.schema)

    @property
    def is_newest(self) -> bool:
        """Whether it is the newest schema that the driver knows of its table."""
        return self.schema is None or self._known.newest.get(self.schema.table_id) == self.schema.digest

    def advance(self, schema: SchemaId) -> None:
        self.catalog = self.catalog.as_of(schema)
        self.schema = schema
        self.has_advanced = True
        self._passed.clear()

    def step_to(self, schema: SchemaId) -> SchemaId:
        """The first schema after the one in force, on the way to a newer one: rows follow each. On the way to a table
        that was created again these are the later schemas of the former one. A table's first schema has none before it.
        """
        current = self.schema
        if current is None:
            return schema
        table_id = current.table_id
        last = schema.digest if table_id == schema.table_id else self._known.newest.get(table_id, current.digest)
        following = self._known.versions_between(table_id, current.digest, last)
        digest = next((later for later in following if later != current.digest), None)
        return schema if digest is None else SchemaId(table_id, digest)

    def check(self, index: int, record: RawRecord, message: RawMessage) -> None:
        """Raise SchemaAdvanceError if the record at an index is folded under a newer schema."""
        current, named = self.schema, SchemaId(message.table_id, message.schema_digest)
        if current == named or named in self._passed:
            return
        schema = self._schema_of(record, message)
        if schema is not None and schema != current:
            raise SchemaAdvanceError(index, schema)

    def _schema_of(self, record: RawRecord, message: RawMessage) -> SchemaId | None:
        """The schema that is in force with a message; None if it changes nothing."""
        table_id, current = message.table_id, self.schema
        if current is None or current.table_id != table_id:
            if current is not None and not self._known.is_newer(table_id, current.table_id):
                return None
            return self._first_schema(record, message)
        if message.kind in _NEVER_FIRST or (table_id, message.schema_digest) not in self._known.schemas:
            return None
        return self._advanced(current.digest, record, message)

    def _first_schema(self, record: RawRecord, message: RawMessage) -> SchemaId | None:
        """That of a table's first message."""
        versions = self._known.versions(message.table_id)
        if not versions or (message.table_id, message.schema_digest) not in self._known.schemas:
            return None if not versions else SchemaId(message.table_id, versions[-1])
        if message.kind in _NEVER_FIRST:
            return SchemaId(message.table_id, self._known.version_from(message.table_id, message.schema_digest))
        return self._advanced(versions[0], record, message)

    def _advanced(self, first: bytes, record: RawRecord, message: RawMessage) -> SchemaId:
        """The schema under which the message was written: at least `first`, and at most the one that it names."""
        table_id = message.table_id
        candidates = self._known.versions_between(table_id, first, message.schema_digest)
        if not candidates or candidates == [first]:
            self._passed.add(SchemaId(table_id, message.schema_digest))
            return SchemaId(table_id, first)
        return SchemaId(table_id, _Written(record, message, self._known).under(candidates))


class _Written:
    """Tells under which schema a message was written, by its columns and its time."""

    def __init__(self, record: RawRecord, message: RawMessage, catalog: TableCatalog) -> None:
        self._record = record
        self._message = message
        self._catalog = catalog
        self._time = 0  # µs

    def under(self, digests: Sequence[bytes]) -> bytes:
        """The one of some schemas: of those that can have been written with, the newest that is not newer than the
        write or, if its time is older than all of them, the newest one.
        """
        tables = {digest: self._catalog.schema(self._message.table_id, digest) for digest in digests}
        found = [digest for digest in digests if self._may_be_under(digest, tables[digest])] or [digests[-1]]
        return next(
            (candidate for candidate in reversed(found) if tables[candidate].altered_at <= self._time), found[-1]
        )

    def _may_be_under(self, digest: bytes, table: TableMetadata) -> bool:
        kind = self._message.kind
        if kind in IMAGE_KINDS:  # they are not written now
            return digest == self._message.schema_digest
        if kind == "heartbeat":
            self._time = self._message.clock
            return True
        if kind in TRUNCATION_KINDS:
            self._time = self._message.truncation_epoch * 1000
            return True
        update = self._read(digest)
        if update is None:
            return False
        self._time = update.source.ts_us
        named = _types(self._catalog.schema(self._message.table_id, self._message.schema_digest))
        present = _types(table)
        columns = {name for row in (update.row, update.static) if row is not None for name in row.columns}
        return columns <= present.keys() and all(
            name not in named or _is_alike(named[name], present[name]) for name in columns
        )

    def _read(self, digest: bytes) -> RowUpdate | None:
        """The update read under a schema; None if it cannot be."""
        message = replace(self._message, schema_digest=digest)
        try:
            return row_update(message, self._record, self._catalog.as_of(SchemaId(message.table_id, digest)), 0)
        except UnreadableError:
            return None


def _is_alike(left: CqlType, right: CqlType) -> bool:
    """Whether values of both types are serialized alike: a user type's fields may have other names."""
    return left == right or (not isinstance(left, NativeType) and type_form(left, EXACT) == type_form(right, EXACT))


def _types(table: TableMetadata) -> dict[str, CqlType]:
    return {column.name: column.type for column in table.static_columns + table.regular_columns}

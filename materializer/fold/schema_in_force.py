"""Decides under which schema each record is folded, so that the history does not depend on how far behind the job is.

A raw message names the schema that its publisher knew. The state names the schema that is in force: the one under which
the last record was folded. It only advances, with the first record that was written under a newer schema, whatever the
driver knows by then (decision 0049). A publisher that is behind names a newer schema than the one that a mutation was
written with. Its columns and its write time show that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.raw import CONTROL_KINDS, REPAIR_KINDS
from materializer.fold.schema_change import read_shown
from materializer.fold.write_schemas import WriteSchemas
from materializer.rows.catalog import SchemaId

if TYPE_CHECKING:
    from cdc_common.messages.raw import RawMessage
    from materializer.records import RawRecord
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

    def check(self, index: int, record: RawRecord, message: RawMessage) -> bool:
        """Raise SchemaAdvanceError if the record at an index is folded under a newer schema. False if it is left out: a
        heartbeat from before its table was created, which the former table's last writes may follow.
        """
        current, named = self.schema, SchemaId(message.table_id, message.schema_digest)
        if message.kind == "heartbeat" and self._is_before_table(message):
            return False
        if current == named or named in self._passed:
            return True
        schema = self._schema_of(record, message)
        if schema is not None and schema != current:
            raise SchemaAdvanceError(index, schema)
        return True

    def _is_before_table(self, message: RawMessage) -> bool:
        """Whether a heartbeat is from before its table was created, and the table is not yet the one in force."""
        if self.schema is not None and self.schema.table_id == message.table_id:
            return False
        versions = self._known.versions(message.table_id)
        return bool(versions) and message.clock < self._known.schema(message.table_id, versions[0]).altered_at

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
            if self.schema == SchemaId(table_id, first):
                self._passed.add(SchemaId(table_id, message.schema_digest))
            return SchemaId(table_id, first)
        return SchemaId(table_id, WriteSchemas(record, message, self._known).under(candidates))

"""Change messages of one table as the materializer writes them, with their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.changes import RowChange, RowImage, Source, change_op
from cdc_common.messages.envelope import ChangeEncoder, key_schema, schema_text, value_schema

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.avro.type_forms import TypeForms

PREFIX = "cdc"
WRITTEN_US = 1_795_000_000_000_000


class Encoded(NamedTuple):
    """A message in Confluent's wire format (value None: a tombstone), and the schemas as texts."""

    key_schema: str
    key: bytes
    value_schema: str
    value: bytes | None


class TableMessages:
    """Writes the messages of one table under one of its schemas. It keeps the rows, for `before`."""

    def __init__(self, table: TableMetadata, forms: TypeForms, former: TableMessages | None = None) -> None:
        """former: under the schema before."""
        self.table = table
        self.rows: dict[tuple[bytes, Clustering | None], RowImage] = {} if former is None else former.rows
        self.key_schema = schema_text(key_schema(table, PREFIX, forms))
        self.value_schema = schema_text(value_schema(table, PREFIX, forms))
        self._encoder = ChangeEncoder(table, PREFIX, 1, 2, "main", forms=forms)
        self._sequence = 0

    @property
    def topic(self) -> str:
        return f"{PREFIX}.{self.table.keyspace}.{self.table.name}"

    def change(self, key: bytes, clustering: Clustering | None, after: RowImage | None) -> list[Encoded]:
        """The messages of a row that becomes `after`: one, two for a delete, none if the forms leave it out."""
        before = self.rows.get((key, clustering))
        self._sequence += 1
        source = Source(WRITTEN_US, bytes(16), "CommitLog-7-1.log", 0)
        change = RowChange(key, clustering, change_op(before, after), before, after, self._sequence, source)
        if after is None:
            del self.rows[key, clustering]
        else:
            self.rows[key, clustering] = after
        if self._encoder.leaves_out(change):
            return []
        message = self._encoder.encode(change, WRITTEN_US // 1000)
        assert message is not None
        found = [Encoded(self.key_schema, message.key, self.value_schema, message.value)]
        return [*found, found[0]._replace(value=None)] if after is None else found

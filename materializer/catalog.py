"""The table schemas that a task folds with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.schema import TableMetadata


class SchemaId(NamedTuple):
    """One schema of one table: the table's id and the digest, 16 bytes each."""

    table_id: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class TableCatalog:
    """Every schema that the tables topic holds; the driver hands it to the tasks with each batch.

    `schemas` by (table id, digest); `newest` the digest of each table id's newest schema, the table ids in the order in
    which the tables of these ids came to be; `topics` the change topic of each digest under which changes can be
    published.
    """

    schemas: Mapping[tuple[bytes, bytes], TableMetadata]
    newest: Mapping[bytes, bytes]
    topics: Mapping[bytes, str] = field(default_factory=dict)

    def schema(self, table_id: bytes, digest: bytes) -> TableMetadata:
        """CdcError(SCHEMA_UNKNOWN) where the topic does not hold it."""
        table = self.schemas.get((table_id, digest))
        if table is None:
            raise CdcError(
                Code.SCHEMA_UNKNOWN,
                f"No schema of table id {table_id.hex()} with digest {digest.hex()} is in the tables topic.",
                "Start the publisher that wrote this raw message again: it sends the schemas it knows.",
            )
        return table

    def newest_of(self, table_id: bytes) -> tuple[bytes, TableMetadata]:
        """The digest and the schema that messages of this table are published with."""
        digest = self.newest.get(table_id, b"")
        return digest, self.schema(table_id, digest)

    def is_newer(self, table_id: bytes, than: bytes) -> bool:
        """Whether the table of the id took the place of the other one, under the same name."""
        order = list(self.newest)
        return table_id in order and (than not in order or order.index(table_id) > order.index(than))

"""The table schemas that a task folds with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.byte_comparable import bound_encoder, clustering_encoder, path_encoder
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound
from cassandra_storage.formats.schema.tables import TableMetadata
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.envelope import ChangeEncoder
from cdc_common.messages.topics import Topic
from materializer.rows.native_plan import build_plan
from materializer.rows.row_columns import row_columns

if TYPE_CHECKING:
    from cdc_native.fold.plan import Plan  # noqa: TC004 - it may not be compiled


class SchemaId(NamedTuple):
    """One schema of one table."""

    # The table's id (16 bytes).
    table_id: bytes
    # The schema's digest (16 bytes).
    digest: bytes


class KeyEncoders(NamedTuple):
    """The encoders of one table (cassandra_storage.formats.rows.byte_comparable). They raise FormatError for a value
    that its column's type cannot have.
    """

    # Encodes the values of the clustering columns.
    clustering: Callable[[Clustering], bytes]
    # Encodes the bound of a range of rows.
    bound: Callable[[ClusteringBound], bytes]
    # Encode the cell paths of the multi-cell columns that a row may hold, by the columns' names.
    paths: Mapping[str, Callable[[bytes], bytes]]


@dataclass(frozen=True, slots=True)
class TableCatalog:
    """Every schema in the tables topic. The driver gives it to the tasks with each batch."""

    # By table id and digest, of each table from the oldest to the newest.
    schemas: Mapping[tuple[bytes, bytes], TableMetadata]
    # The digest of each table id's newest schema. The table ids are in the order in which their tables were created.
    newest: Mapping[bytes, bytes]
    # The change topic of each digest whose changes can be published.
    topics: Mapping[bytes, str] = field(default_factory=dict)
    # The encoder of each digest's messages: with one, the native core writes the messages as it folds.
    encoders: Mapping[bytes, ChangeEncoder] = field(default_factory=dict, repr=False, compare=False)
    # The number of partitions of each change topic.
    partitions: Mapping[str, int] = field(default_factory=dict)
    # Kafka's id of each change topic.
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    _encoders: dict[bytes, KeyEncoders] = field(default_factory=dict, repr=False, compare=False)
    _plans: dict[bytes, Plan | None] = field(default_factory=dict, repr=False, compare=False)

    def schema(self, table_id: bytes, digest: bytes) -> TableMetadata:
        """Return the table's schema. CdcError(SCHEMA_UNKNOWN) if the tables topic does not have it."""
        table = self.schemas.get((table_id, digest))
        if table is None:
            raise CdcError(
                Code.SCHEMA_UNKNOWN,
                f"No schema of table id {table_id.hex()} with digest {digest.hex()} is in the tables topic.",
                "Start the publisher that wrote this raw message again: it sends the schemas it knows.",
            )
        return table

    def key_encoders(self, table_id: bytes, digest: bytes) -> KeyEncoders:
        """The encoders of a schema's clusterings and bounds in the state's keys, and of its paths in merged rows."""
        found = self._encoders.get(digest)
        if found is None:
            table = self.schema(table_id, digest)
            found = self._encoders[digest] = KeyEncoders(
                clustering_encoder(table.clustering),
                bound_encoder(table.clustering),
                {name: path_encoder(column.type) for name, column in row_columns(table).items() if column.is_complex},
            )
        return found

    def native_plan(self, table_id: bytes) -> Plan | None:
        """The native core's plan of a table's newest schema; None if the Python code must fold all its rows."""
        digest, table = self.newest_of(table_id)
        if digest not in self._plans:
            self._plans[digest] = build_plan(table_id, digest, table, self.encoders.get(digest))
        return self._plans[digest]

    def newest_of(self, table_id: bytes) -> tuple[bytes, TableMetadata]:
        """The digest and the schema with which changes of this table are published."""
        digest = self.newest.get(table_id, b"")
        return digest, self.schema(table_id, digest)

    def newest_topic(self, table_id: bytes) -> Topic | None:
        """Return the topic for changes of this table; None if this catalog belongs to no job that publishes."""
        name = self.topics.get(self.newest.get(table_id, b""))
        return None if name is None else Topic(name, self.partitions.get(name, 1))

    def versions(self, table_id: bytes) -> list[bytes]:
        """The digests of a table's schemas whose changes can be published, from the oldest to the newest.

        Not of a schema that was never the newest: one without a time, which a publisher has derived (decision 0019).
        """
        newest = self.newest.get(table_id)
        has_times = newest is not None and self.schema(table_id, newest).altered_at > 0
        return [
            digest
            for (of, digest), table in self.schemas.items()
            if of == table_id and (not self.topics or digest in self.topics) and (table.altered_at > 0 or not has_times)
        ]

    def _digests(self, table_id: bytes) -> list[bytes]:
        """Return the digests of the table's known schemas, the oldest first."""
        return [digest for of, digest in self.schemas if of == table_id]

    def version_from(self, table_id: bytes, digest: bytes) -> bytes:
        """The schema itself or, if it is none of `versions`, the first one after it, or the newest."""
        self.schema(table_id, digest)
        versions = self.versions(table_id)
        if digest in versions:
            return digest
        order = self._digests(table_id)
        return next((later for later in order[order.index(digest) :] if later in versions), versions[-1])

    def versions_between(self, table_id: bytes, first: bytes, last: bytes) -> list[bytes]:
        """`versions` from one schema to the other or, if that is none of them, to the first one after it."""
        versions = self.versions(table_id)
        if not versions:
            return []
        self.schema(table_id, first)
        order = self._digests(table_id)
        end = versions.index(self.version_from(table_id, last))
        return [version for version in versions[: end + 1] if order.index(version) >= order.index(first)]

    def written_with(self, table_id: bytes, digest: bytes) -> TableMetadata:
        """The schema that reads an update which names one: an earlier one that is still in force as the newest, under
        which the update was written, or the named one.
        """
        named = self.schema(table_id, digest)
        newest = self.newest.get(table_id)
        if newest is None or digest == newest:
            return named
        order = self._digests(table_id)
        is_early = newest in order and named.altered_at > 0 and order.index(digest) > order.index(newest)
        return self.schema(table_id, newest) if is_early else named

    def as_of(self, schema: SchemaId) -> TableCatalog:
        """This catalog with the schema as its table's newest."""
        if self.newest.get(schema.table_id) == schema.digest:
            return self
        return replace(self, newest={**self.newest, schema.table_id: schema.digest})

    def is_newer(self, table_id: bytes, than: bytes) -> bool:
        """Whether the table of this id was created after that of the other id, under the same name."""
        order = list(self.newest)
        return table_id in order and (than not in order or order.index(table_id) > order.index(than))

"""One table of an Iceberg catalog: it gets its columns, its files and its position in one commit.

Two processes may believe that they are its committer. A commit says which snapshot it follows, so of two at the same
time one is refused; then the table is loaded again, and its position says what is left. The client's own retries would
put a stale commit on top of the newer one, so they are off.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.update import AddSchemaUpdate, AssertCurrentSchemaId, SetCurrentSchemaUpdate
from pyiceberg.transforms import DayTransform, HourTransform, Transform

from archive.faults import table_refused
from archive.registrar.data_files import describe_files
from archive.writer.columns import BASE_COLUMNS, EVENT_TIME_ID, Columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

OFFSETS = "cdc.archive.offsets"
_PROPERTIES = {"format-version": "2", "commit.retry.num-retries": "0"}
_PARTITIONS: dict[str, tuple[str, Transform[Any, Any]]] = {
    "hour": ("event_hour", HourTransform()),
    "day": ("event_day", DayTransform()),
}


class LedgerOffsets(NamedTuple):
    """The position of a table in the ledger."""

    # Kafka's id of the topic of file events.
    topic_id: str
    # The next offset that the table does not have yet, by partition of that topic.
    offsets: dict[int, int]

    def has(self, partition: int, offset: int) -> bool:
        """Whether the table has the event at an offset."""
        return offset < self.offsets.get(partition, 0)

    def as_text(self) -> str:
        return json.dumps({"topic_id": self.topic_id, "offsets": self.offsets}, separators=(",", ":"))


class LakeTable:
    """A table. Exceptions of PyIceberg, or CdcError(ARCHIVE_TABLE) for one that is not the archive's."""

    def __init__(self, catalog: Catalog, name: str, location: str, bucket: str) -> None:
        self._catalog = catalog
        self._name = name
        self._location = location
        self._bucket = bucket

    def load(self) -> Table:
        """The table as it is now. It is created if it is not there."""
        try:
            return self._catalog.load_table(self._name)
        except NoSuchTableError:
            self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            label, transform = _PARTITIONS[self._bucket]
            spec = PartitionSpec(PartitionField(EVENT_TIME_ID, 1000, transform, label))
            schema = schema_of(BASE_COLUMNS)
            return self._catalog.create_table_if_not_exists(
                self._name, schema, location=self._location, partition_spec=spec, properties=_PROPERTIES
            )

    def offsets(self, table: Table, topic_id: str) -> LedgerOffsets:
        """The position of a loaded table."""
        stored = table.properties.get(OFFSETS)
        if stored is None:
            if table.current_snapshot() is not None:
                raise table_refused(self._name, f"it has files, and no property {OFFSETS}")
            return LedgerOffsets(topic_id, {})
        fields = json.loads(stored)
        if fields["topic_id"] != topic_id:
            raise table_refused(self._name, "its position is of another topic of file events")
        return LedgerOffsets(topic_id, {int(partition): at for partition, at in fields["offsets"].items()})

    def commit(self, table: Table, columns: Columns, files: Sequence[str], offsets: LedgerOffsets) -> None:
        """Add files with these columns, and move the position, in one commit."""
        with table.transaction() as transaction:
            wanted = schema_of(columns, max(table.schemas()) + 1)
            self._check_numbers(table.schema(), columns)
            if table.schema().as_struct() != wanted.as_struct():
                transaction._apply(  # noqa: SLF001 - the numbers of columns are the archive's
                    (AddSchemaUpdate(schema=wanted), SetCurrentSchemaUpdate()),
                    (AssertCurrentSchemaId.model_validate({"current-schema-id": table.schema().schema_id}),),
                )
            transaction.set_properties({OFFSETS: offsets.as_text()})
            if files:
                with transaction.update_snapshot().fast_append() as append:
                    for file in describe_files(table.io, transaction.table_metadata, columns, files):
                        append.append_data_file(file)

    def _check_numbers(self, known: Schema, columns: Columns) -> None:
        names = columns.names()
        for number, field in index_by_id(known).items():
            if field.name not in names.get(number, ()):
                raise table_refused(self._name, f"its column {field.name} is not one of the archive's")


def schema_of(columns: Columns, schema_id: int = 0) -> Schema:
    """The Iceberg schema of a list of columns. schema_id: Iceberg's number of it in the table."""
    stored: Mapping[str, Any] = {"type": "struct", "schema-id": schema_id, "fields": columns.as_iceberg()}
    return Schema.model_validate(stored)

"""Whether messages without a value delete rows of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.faults import schema_refused
from warehouse.loading.rows import by_schema

if TYPE_CHECKING:
    from stream_runtime.records import SourcePartition
    from stream_runtime.source_batch import SourceBatch
    from warehouse.tables.schemas import RowSchema, Schemas


class Tombstones:
    """The rule of a topic. Where change messages say what is deleted, messages without a value only follow them."""

    def __init__(self, topic: str, schemas: Schemas, known: RowSchema | None) -> None:
        """known: the newest schema that was loaded; None for none."""
        self._topic = topic
        self._schemas = schemas
        self._known = known

    def delete(self, partition: SourcePartition, batch: SourceBatch) -> bool:
        """Whether those of a batch delete rows. Before any schema is known, there is no row to delete. CdcError."""
        for schema_id, _ in by_schema(partition, batch):
            if schema_id is None:
                continue
            schema = self._schemas.find(schema_id)
            known = self._known
            if known is not None and (known.is_envelope, known.has_sequence) != (
                schema.is_envelope,
                schema.has_sequence,
            ):
                raise schema_refused(self._topic, schema_id, "some schemas are change messages, and others are not")
            self._known = schema
        return self._known is not None and not self._known.is_envelope

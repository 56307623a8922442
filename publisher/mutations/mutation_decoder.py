"""Decodes mutations with the node's schema, and quarantines those that no known schema fits.

A mutation of one table whose schema may still come waits with its table (publisher.topics.missing_schemas). One of
several tables waits here, and all tables with it: it is not known which tables it is of.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cassandra_storage.formats.rows.mutation import only_table
from cdc_common.errors.codes import Code
from publisher.mutations.messages import NO_MESSAGES, make_gap_messages, split_into_messages
from publisher.mutations.quarantine import SentGap
from publisher.topics import missing_schemas

if TYPE_CHECKING:
    from cassandra_storage.formats.commitlog.segment import CommitLogEntry
    from publisher.mutations.messages import DecodedMutation, Origin
    from publisher.mutations.quarantine import Quarantine
    from publisher.tables.node_schema import NodeSchema
    from publisher.topics.missing_schemas import MissingSchemas
    from publisher.topics.table_follower import TableFollower
    from publisher.waits import Waits

RETRY_SECONDS = 0.5

log = structlog.get_logger(__name__)


class MutationDecoder:
    """Tries the current schema, and a newer one."""

    def __init__(
        self,
        schema: NodeSchema,
        quarantine: Quarantine,
        tables: TableFollower,
        missing: MissingSchemas,
    ) -> None:
        self._schema = schema
        self._quarantine = quarantine
        self._tables = tables
        self._missing = missing

    def decode(self, entry: CommitLogEntry, origin: Origin) -> Waits[DecodedMutation]:
        """The messages of a mutation. If the schema does not fit, read it again. No messages if the mutation's only
        table has to wait for its schema: the mutation is held.
        """
        mutation = entry.mutation
        self._schema.note_mutation(mutation, origin.messaging_version, origin.segment, origin.position)
        deadline = monotonic() + missing_schemas.SCHEMA_WAIT_SECONDS
        while True:
            try:
                return split_into_messages(mutation, origin, self._schema)
            except FormatError as error:
                if (yield from self._read_newer_schema()):
                    continue
                if monotonic() > deadline or not self._missing.may_arrive(error):
                    return self._give_up(mutation, origin, error)
                if (table_id := only_table(mutation)) is not None:
                    self._missing.hold(table_id, error.reason, origin.segment, entry.position)
                    return NO_MESSAGES
                yield RETRY_SECONDS

    def _read_newer_schema(self) -> Waits[bool]:
        self._schema.forget_version()
        return self._tables.wait_for_schema()

    def _give_up(self, mutation: bytes, origin: Origin, error: FormatError) -> DecodedMutation:
        self._missing.never_arrived(error)
        if isinstance(error, UnknownTableError) and only_table(mutation) is not None:
            self._missing.skip_dropped(error.table_id)
            return NO_MESSAGES
        return self._quarantine_mutation(mutation, origin, error)

    def _quarantine_mutation(self, mutation: bytes, origin: Origin, error: FormatError) -> DecodedMutation:
        """Store the mutation, and send gap messages to the tables that it may contain."""
        gap_messages = make_gap_messages(mutation, origin, self._schema)
        gaps = [SentGap(gap.table.id, gap.partition_key) for gap in gap_messages.messages]
        self._quarantine.store(origin, mutation, error.reason, gaps)
        log.error(
            "quarantined a mutation that cannot be decoded",
            code=Code.QUARANTINED.text,
            file=origin.file,
            position=origin.position,
            reason=error.reason,
            bytes=len(mutation),
            fix="cassandra-publisher quarantine ls",
        )
        return gap_messages

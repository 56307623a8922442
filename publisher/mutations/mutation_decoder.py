"""Decodes mutations with the node's schema, and quarantines those that no known schema fits."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.errors import FormatError, UnknownColumnError, UnknownTableError
from cassandra_storage.mutation import only_table
from cdc_program.errors import Code
from publisher.mutations.messages import NO_MESSAGES, make_gap_messages, split_into_messages
from publisher.mutations.quarantine import SentGap

if TYPE_CHECKING:
    from publisher.mutations.messages import DecodedMutation, Origin
    from publisher.mutations.quarantine import Quarantine
    from publisher.tables.node_schema import NodeSchema
    from publisher.topics.table_follower import TableFollower
    from publisher.upkeep.housekeeping import Housekeeping

SCHEMA_WAIT_SECONDS = 10.0
RETRY_SECONDS = 0.5

log = structlog.get_logger(__name__)


class MutationDecoder:
    """Tries the current schema, and a newer one."""

    def __init__(
        self, schema: NodeSchema, quarantine: Quarantine, tables: TableFollower, housekeeping: Housekeeping
    ) -> None:
        self._schema = schema
        self._quarantine = quarantine
        self._tables = tables
        self._housekeeping = housekeeping
        self._never_arrived: set[str] = set()  # unknown tables and columns that were waited for once, without success

    def decode(self, mutation: bytes, origin: Origin) -> DecodedMutation:
        """The messages of a mutation. If the schema does not fit, read it again for a while."""
        self._schema.follow_log(mutation, origin.messaging_version, origin.segment, origin.position)
        deadline = monotonic() + SCHEMA_WAIT_SECONDS
        while True:
            try:
                return split_into_messages(mutation, origin, self._schema)
            except FormatError as error:
                if self._read_newer_schema():
                    continue
                if monotonic() > deadline or not self._may_arrive(error):
                    return self._give_up(mutation, origin, error)
                self._housekeeping.serve(RETRY_SECONDS)

    def _read_newer_schema(self) -> bool:
        self._schema.forget_version()
        return self._tables.wait_for_schema()

    def _may_arrive(self, error: FormatError) -> bool:
        """The node may show an unknown table or column a moment later."""
        is_unknown = isinstance(error, UnknownTableError | UnknownColumnError)
        return is_unknown and error.reason not in self._never_arrived

    def _give_up(self, mutation: bytes, origin: Origin, error: FormatError) -> DecodedMutation:
        self._never_arrived.add(error.reason)
        if isinstance(error, UnknownTableError) and only_table(mutation) is not None:
            return self._skip_dropped_table(error.table_id)
        return self._quarantine_mutation(mutation, origin, error)

    def _skip_dropped_table(self, table_id: bytes) -> DecodedMutation:
        """The table was dropped before the publisher saw it: no consumer waits for its rows.

        The node knew the table when it wrote the mutation, and has been asked for its schema since.
        """
        self._schema.ignore_table(table_id)
        log.warning(
            "skipping mutations of a dropped table",
            code=Code.SCHEMA_UNKNOWN.text,
            table=self._schema.name_in_log(table_id),
            table_id=table_id.hex(),
        )
        return NO_MESSAGES

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

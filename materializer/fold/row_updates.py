"""Raw records decoded: their messages, and the updates of Cassandra partitions in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge.reconciliation import largest_timestamp
from cassandra_storage.formats.rows.dropped_columns import without_dropped
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.changes import Source
from cdc_common.messages.errors import MessageError, NextVersionError
from cdc_common.messages.raw import CONTROL_KINDS, IMAGE_KINDS, REPAIR_KINDS, TRUNCATION_KINDS, RawMessage, decode
from materializer.fold.update_check import check_update
from materializer.records import SNAPSHOT_TIMESTAMP, Arrival, RawRecord, RowUpdate, UnreadableError
from materializer.rows.row_columns import row_columns

_WITHOUT_ROWS = CONTROL_KINDS | TRUNCATION_KINDS | REPAIR_KINDS | {"heartbeat"}
_ALONE = TRUNCATION_KINDS | REPAIR_KINDS
_NEVER_LEFT_OUT = _WITHOUT_ROWS | {"gap"}

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.rows.row import Row
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_native.fold.updates import PlainUpdate
    from materializer.fold.arrivals import AnyArrival, OnUnreadable
    from materializer.fold.gaps import IncompletePartitions
    from materializer.fold.truncations import Truncations
    from materializer.rows.catalog import TableCatalog


class AloneError(Exception):
    """The record at `index` deletes all rows, or is a step of a repair: it can't be folded together with others."""

    def __init__(self, index: int) -> None:
        super().__init__(f"record {index}")
        self.index = index


def decode_records(  # noqa: PLR0913 - what they are, and all that they concern
    records: Iterable[RawRecord],
    arrival_times_ms: Sequence[int],
    incomplete: IncompletePartitions,
    decoded: Sequence[PlainUpdate | None],
    truncations: Truncations,
    *,
    check_schema: Callable[[int, RawRecord, RawMessage], bool],
    is_alone: bool,
) -> list[AnyArrival]:
    """The records with their messages, except what a truncation or `check_schema` leaves out. Gap messages and
    unreadable records go to `incomplete` instead.

    decoded: what the native core has decoded of them. check_schema: SchemaInForce.check, with their index; it is asked
    of no write that comes again, and of no heartbeat of a host whose writes do: those that come again name the newest
    schema that the host has then, and may have been written under an older one.
    CdcError(STATE_FORMAT) for the message of a newer publisher. AloneError if one of them must be folded alone, and is
    not. SchemaAdvanceError if one of them is folded under a newer schema.
    """
    arrivals: list[AnyArrival] = []
    for index, (record, arrival_ms, update) in enumerate(zip(records, arrival_times_ms, decoded, strict=True)):
        if update is not None:
            arrivals.append(update)
            continue
        try:
            message = decode_record(record)
        except UnreadableError as error:
            incomplete.dead_letter(record, error)
            continue
        if message.kind not in _NEVER_LEFT_OUT and truncations.leaves_out(message, arrival_ms):
            if truncations.is_gone(message):
                incomplete.resolve_message(record, message, arrival_ms)
            continue
        is_waited_heartbeat = message.kind == "heartbeat" and truncations.is_waited_for(message)
        if not is_waited_heartbeat and not check_schema(index, record, message):
            continue
        if message.kind == "gap":
            if not message.file or not truncations.is_gone(message):
                incomplete.apply_gap_message(record, message)
            continue
        if message.kind in _ALONE and not is_alone:
            raise AloneError(index)
        arrivals.append(Arrival(record, message, arrival_ms))
    return arrivals


def decode_record(record: RawRecord) -> RawMessage:
    """Decode the record's message. UnreadableError; CdcError(STATE_FORMAT) for the message of a newer publisher."""
    try:
        return decode(record.value)
    except NextVersionError as error:
        raise CdcError(
            Code.STATE_FORMAT,
            f"The raw message at offset {record.offset} is from a newer publisher: {error.reason}.",
            "Upgrade the materializer: it continues where it stopped.",
        ) from error
    except MessageError as error:
        raise UnreadableError(error.reason) from error


def read_row_updates(
    arrivals: Iterable[AnyArrival], catalog: TableCatalog, on_unreadable: OnUnreadable
) -> list[RowUpdate]:
    """The updates in the messages, in their order; heartbeats, truncations and steps have none."""
    updates = []
    for record, message, arrival_ms in arrivals:
        if message.kind in _WITHOUT_ROWS:
            continue
        try:
            update = row_update(message, record, catalog, arrival_ms)
        except UnreadableError as error:
            on_unreadable(record, error)
            continue
        if update is not None:
            updates.append(update)
    return updates


def row_update(message: RawMessage, record: RawRecord, catalog: TableCatalog, arrival_ms: int) -> RowUpdate | None:
    """The message's update; None if nothing is left of it. Raises as read_update."""
    return _update(message, read_update(message, record, catalog), arrival_ms, record.value)


def read_update(message: RawMessage, record: RawRecord, catalog: TableCatalog) -> PartitionUpdate:
    """Read the message's update. UnreadableError; CdcError(SCHEMA_UNKNOWN) if the tables topic does not have its
    schema.
    """
    table = catalog.written_with(message.table_id, message.schema_digest)
    try:
        update, _ = read_partition_update(message.update, 0, message.messaging_version, {message.table_id: table})
    except FormatError as error:
        raise UnreadableError(str(error)) from error
    if update.partition_key != record.key:
        raise UnreadableError("its update is of another partition than its key")
    digest, newest = catalog.newest_of(message.table_id)
    if digest != message.schema_digest:
        update = _under_newest(update, newest)
    try:
        check_update(update, catalog.key_encoders(message.table_id, digest), is_counter=newest.is_counter)
    except FormatError as error:
        raise UnreadableError(str(error)) from error
    return update


def _under_newest(update: PartitionUpdate, newest: TableMetadata) -> PartitionUpdate:
    """The update as a node with the newest schema writes it: an older node still writes dropped columns.

    CdcError(SCHEMA_UNKNOWN) if the newest schema has never had one of its columns.
    """
    _check_columns(update, newest)
    if not newest.dropped_columns:
        return update
    static = None if update.static_row is None else without_dropped(update.static_row, newest)
    rows = (without_dropped(row, newest) for row in update.rows)
    return update._replace(
        static_row=None if static is None or static.is_empty else static,
        rows=tuple(row for row in rows if not row.is_empty),
    )


def _check_columns(update: PartitionUpdate, newest: TableMetadata) -> None:
    written = {name for row in update.rows for name in row.columns}
    if update.static_row is not None:
        written |= update.static_row.columns.keys()
    unknown = written - row_columns(newest).keys()
    if unknown:
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The newest schema of {newest.qualified_name} in the tables topic lacks columns of a raw message: "
            f"{', '.join(sorted(unknown))}.",
            "Start the publisher that wrote this raw message again: it sends the schemas it knows.",
        )


def _update(message: RawMessage, update: PartitionUpdate, arrival_ms: int, raw: bytes) -> RowUpdate | None:
    """None if nothing is left: a row whose cells are all of dropped columns."""
    row = next(iter(update.rows), None)
    tombstone = next(iter(update.range_tombstones), None)
    static = update.static_row
    if row is not None:
        _refuse_shadowable(message, row)
        timestamp = largest_timestamp(row)
    elif static is not None:
        timestamp = largest_timestamp(static)
    elif tombstone is not None:
        timestamp = tombstone.deletion.marked_for_delete_at
    elif not update.deletion.is_live:
        timestamp = update.deletion.marked_for_delete_at
    else:
        return None
    is_snapshot = message.kind in IMAGE_KINDS
    place = message.host_id, message.segment, message.position, message.index
    return RowUpdate(
        order=(SNAPSHOT_TIMESTAMP if is_snapshot else timestamp, *place),
        partition_key=update.partition_key,
        source=Source(timestamp, message.host_id, message.file, message.position, snapshot=is_snapshot),
        arrival_ms=arrival_ms,
        raw=raw,
        row=row,
        static=static,
        range=tombstone,
        deletion=update.deletion,
        is_snapshot=is_snapshot,
    )


def _refuse_shadowable(message: RawMessage, row: Row) -> None:
    """A shadowable deletion's effect depends on the order of merging, in Cassandra too (decision 0007)."""
    if row.deletion.is_shadowable:
        raise CdcError(
            Code.NOT_SUPPORTED,
            f"{message.file} has a shadowable row deletion at position {message.position}. Releases before "
            "CASSANDRA-11500 wrote these to materialized views; what they delete depends on the order of merging.",
            "Drop the view and create it again, or turn cdc off for it.",
        )

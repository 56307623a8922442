"""Deletes all rows of a change topic for its readers: a `d` for each row whose newest message is not one."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cdc_common.messages import wire
from cdc_common.messages.closing_deletes import ClosingDeletes
from materializer.fault_points import RebuildPoint
from stream_runtime.fault_points import reach
from stream_runtime.kafka import read_partition
from stream_runtime.records import Message
from stream_runtime.state.bulk_load import BulkLoad
from stream_runtime.state.changelog import Head
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import NOTHING, next_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from materializer.settings import Settings
    from stream_runtime.kafka import FencingProducer

_ROWS_PER_TRANSACTION = 1000
_KEY = b"k"  # prefix of a change's key: keys begin with 0x00, which the state store uses itself


class Schemas(Protocol):
    """cdc_common.clients.registry.confluent.RegistryClient."""

    def get(self, schema_id: int) -> dict[str, Any]: ...


class ChangePartition(NamedTuple):
    """A partition of a version of the table's change topic."""

    # The topic's name.
    topic: str
    # The partition's number.
    partition: int


class _RowDeletion(NamedTuple):
    """The messages that delete one row, and the row_sequence of its `d`."""

    messages: list[Message]
    row_sequence: int


class DeletedRows(NamedTuple):
    """The rows that were deleted in a change topic."""

    # Their number.
    rows: int
    # The largest row_sequence of their `d` messages.
    max_row_sequence: int


class RowDeleter:
    """Sends the deletions with `producer`, in transactions of 1,000 rows."""

    def __init__(self, settings: Settings, schemas: Schemas, producer: FencingProducer) -> None:
        self._settings = settings
        self._schemas = schemas
        self._producer = producer
        self._closing_deletes: dict[int, ClosingDeletes] = {}

    def delete_rows(self, topic: str, partitions: int) -> DeletedRows:
        """Delete the rows of all partitions of a change topic."""
        deleted = [self._delete_in_partition(ChangePartition(topic, number)) for number in range(partitions)]
        return DeletedRows(
            sum(partition.rows for partition in deleted),
            max((partition.max_row_sequence for partition in deleted), default=0),
        )

    def _delete_in_partition(self, where: ChangePartition) -> DeletedRows:
        """Collect the newest message of each key on disk, then send the deletions."""
        home = self._settings.materializer.state_directory / self._settings.materializer.group_id
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        count = largest = 0
        with (
            tempfile.TemporaryDirectory(dir=home, prefix="rebuild-") as folder,
            closing(open_local_store(Path(folder))) as newest,
        ):
            load = BulkLoad(newest, Head(next_version(NOTHING), 0, 0, 0), {})
            for key, value in read_partition(self._settings.kafka, *where):
                load.add(_KEY + key, value)
            load.finish()
            deletions = self._make_deletions(where, newest.scan(_KEY, _KEY + b"\xff"))
            while some := list(islice(deletions, _ROWS_PER_TRANSACTION)):
                self._send(some)
                count += len(some)
                largest = max(largest, *(deletion.row_sequence for deletion in some))
        return DeletedRows(count, largest)

    def _make_deletions(self, where: ChangePartition, newest: Iterable[tuple[bytes, bytes]]) -> Iterator[_RowDeletion]:
        """One for each row that readers have."""
        for stored, value in newest:
            key = stored[len(_KEY) :]
            delete = self._deletes_for(wire.schema_id(value)).delete_after(value, time.time_ns() // 1000)
            if delete is not None:
                messages = [Message(*where, key, delete.value)]
                if self._settings.materializer.tombstones:
                    messages.append(Message(*where, key, None))
                yield _RowDeletion(messages, delete.row_sequence)

    def _send(self, deletions: list[_RowDeletion]) -> None:
        """Send the deletions in one transaction."""
        self._producer.begin()
        for deletion in deletions:
            for message in deletion.messages:
                self._producer.send(message)
        reach(RebuildPoint.ROWS_SENT)
        self._producer.commit()

    def _deletes_for(self, schema_id: int) -> ClosingDeletes:
        if schema_id not in self._closing_deletes:
            self._closing_deletes[schema_id] = ClosingDeletes(self._schemas.get(schema_id))
        return self._closing_deletes[schema_id]

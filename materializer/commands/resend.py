"""`cassandra-materializer resend`: all rows of a table are sent again to its change topic (decision 0046).

The command marks the states; the job sends the rows, in parts and exactly once, as it does when rows move to another
topic (materializer.fold.topic_move). The job may run or not: each mark is a version of the state, committed by the raw
partition's own producer, which fences the job's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import raw_topic
from materializer.commands.reshard.survey import read_raw_topic
from materializer.commands.stored_partitions import restored
from materializer.errors import RAW_FAULTS
from materializer.planning.topic_finder import topics_of_table
from materializer.rows.topic_ids import resend_writes
from stream_runtime.exactly_once.position import check_no_command
from stream_runtime.kafka import FencingProducer, GroupPositions, Topics
from stream_runtime.state.changelog import Changelog
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.versions import NOTHING, next_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from materializer.records import RawPartition
    from materializer.settings import Settings
    from stream_runtime.exactly_once.position import Position
    from stream_runtime.state.changelog import Head

_TRIES = 5  # the job's worker may take a raw partition back while it is marked


class Resend:
    """Marks the states of one table. `say` prints progress. CdcError or KafkaException if it fails."""

    def __init__(self, settings: Settings, table: str, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._kafka = settings.kafka
        self._group = settings.materializer.group_id
        self._keyspace, _, self._table = table.partition(".")
        self._name = raw_topic(settings.kafka.topic_prefix, self._keyspace, self._table)
        self._say = say
        self._store = object_store(settings.materializer)
        self._positions = GroupPositions(self._kafka, self._group, RAW_FAULTS)

    def describe(self) -> None:
        """Say what would be sent again. Nothing is changed."""
        for name, topic_id in self._change_topics().items():
            self._say(f"{name} (id {topic_id}): every row that the states hold is sent again, as an r")
        for raw_partition, position in self._committed().items():
            self._say(f"{raw_partition}: its state {position.version} is to be marked")

    def mark_states(self) -> None:
        """Mark each state of the table. Another run marks all of them again."""
        ids = self._change_topics()
        for raw_partition in self._committed():
            if self._mark(raw_partition, ids):
                self._say(f"{raw_partition}: marked; its rows are sent before its next raw message is folded")
            else:
                self._say(f"{raw_partition}: has no state, and so no rows")

    def _mark(self, raw_partition: RawPartition, ids: Mapping[str, str]) -> bool:
        """Whether the raw partition has a state, which is marked then."""
        for left in reversed(range(_TRIES)):
            producer = FencingProducer(self._kafka, self._group, str(raw_partition), self._positions.consumer)
            position = self._positions.read([raw_partition])[raw_partition]
            if position is None or position.version == NOTHING:
                producer.abandon()
                return False
            check_no_command(position, raw_partition, RAW_FAULTS)
            try:
                self._commit(producer, raw_partition, position, ids)
            except CdcError as error:
                if not left or error.code not in (Code.STATE_MISMATCH, Code.KAFKA_REFUSED):
                    raise
            else:
                return True
        raise AssertionError

    def _commit(
        self, producer: FencingProducer, raw_partition: RawPartition, position: Position, ids: Mapping[str, str]
    ) -> None:
        checkpoints = CheckpointStore(self._store, self._group, raw_partition, RAW_FAULTS)
        version = next_version(position.version)
        head = self._head(checkpoints, raw_partition, position)._replace(version=version, offset=position.offset)
        changelog = Changelog(head, position.version, position.offset, resend_writes(ids))
        producer.begin()
        checkpoints.write_changelog(changelog)
        producer.send_positions({raw_partition: position._replace(version=version)})
        producer.commit()

    def _head(self, checkpoints: CheckpointStore, raw_partition: RawPartition, position: Position) -> Head:
        """The head of the committed version: of its changelog, or of the state itself if that was deleted."""
        parent = checkpoints.parents().get(position.version)
        if parent is not None:
            return checkpoints.read_changelog(position.version, parent).head
        with restored(self._settings, raw_partition, position) as state:
            head = state.head
        assert head is not None  # it is a version that was committed
        return head

    def _committed(self) -> dict[RawPartition, Position]:
        topic = read_raw_topic(self._kafka, self._name)
        raw_partitions = [topic.raw_partition(number) for number in topic.bounds]
        return {
            raw_partition: found
            for raw_partition, found in self._positions.read(raw_partitions).items()
            if found is not None
        }

    def _change_topics(self) -> dict[str, str]:
        """The existing change topics of the table, and their ids. CdcError if there is none."""
        topics = Topics(self._kafka)
        names = topics_of_table(self._settings, self._keyspace, self._table, topics.partition_counts())
        if not names:
            raise CdcError(
                Code.CONFIG_INVALID,
                f"No change topic of {self._keyspace}.{self._table} exists.",
                "Start the materializer, which creates the topic. It then says that the topic was deleted.",
            )
        return {name: shape.topic_id for name, shape in topics.shapes(names).items()}


def resend_table(settings: Settings, table: str, *, is_confirmed: bool, say: Callable[[str], None]) -> None:
    """Send all rows of `keyspace.table` again, or say what that would do."""
    resend = Resend(settings, table, say)
    if is_confirmed:
        resend.mark_states()
        say(f"The job sends the rows now. If it has stopped {table}: cassandra-materializer retry")
    else:
        resend.describe()
        say("Nothing was done. Run this again with --yes; the materializer may run.")

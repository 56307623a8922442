"""Opens what is needed to work on a share without a state: its commit protocol, and its reader's places."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.settings import KafkaSettings
from stream_runtime.exactly_once.stateless_task import StatelessSettings, StatelessTask
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.faults import Faults
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.kafka.producer import ProducerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.kafka.source_reader import SourceReader
    from stream_runtime.records import Share, SourcePartition, TopicShape


class StatelessOpening(NamedTuple):
    """A job's own choices when it opens a share."""

    # Settings of Kafka.
    kafka: KafkaSettings
    # Settings of the task.
    task: StatelessSettings
    # Limits of the producer.
    limits: ProducerSettings
    # Makes the errors, in the job's words.
    faults: Faults


def open_stateless(
    opening: StatelessOpening,
    group: str,
    share: Share,
    shapes: Mapping[SourcePartition, TopicShape],
    reader: SourceReader,
) -> StatelessTask:
    """Fence every earlier owner of the share, and read its partitions from its offsets on."""
    reach(StatelessPoint.TASK_OPENING)
    sent = StatelessPoint.OFFSET_SENT
    commits = KafkaCommits(opening.kafka, group, share, reader, opening.limits, before_commit=sent)
    task = StatelessTask(commits, opening.task, shapes, opening.faults)
    try:
        for partition in share.partitions:
            reader.add(partition, task.offset(partition))
    except BaseException:
        task.close()
        raise
    return task

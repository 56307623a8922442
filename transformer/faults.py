"""The errors of streams: a factory for each situation, with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.faults import Faults
from stream_runtime.words import Words
from transformer.definition_file import place

if TYPE_CHECKING:
    from stream_runtime.records import SourcePartition, TopicShape
    from transformer.definition import Transformer
    from transformer.errors import StepError


def message_refused(transformer: Transformer, partition: SourcePartition, offset: int, reason: str) -> CdcError:
    """Return CdcError(TRANSFORM_FAILED) for a message. partition: of Kafka."""
    return CdcError(
        Code.TRANSFORM_FAILED,
        f'transformer "{transformer.name}" cannot transform the message at offset {offset} of {partition}: {reason}.',
        "Change the step in the transformers file and restart the job. If the message itself is wrong, find out who "
        "sent it: a consumer of the source shows it (docs/guides/transformers.md).",
    )


def step_does_not_fit(transformer: Transformer, topic: str, error: StepError) -> CdcError:
    """Return CdcError(TRANSFORM_STEP) for a step that does not fit a topic's schema."""
    return CdcError(
        Code.TRANSFORM_STEP,
        f"{place(transformer, error.step)} does not fit the schema of {topic}: {error.reason}.",
        "Correct it in the transformers file and restart the job, or correct the schema.",
    )


def published_already(group: str, partition: SourcePartition, target: str) -> CdcError:
    """Return CdcError(TRANSFORM_REPEATED) for a target with messages that the group has not sent."""
    return CdcError(
        Code.TRANSFORM_REPEATED,
        f"The group {group} has sent no message of {partition} yet, but {target}-{partition.partition} has messages: "
        "another transformer writes there, or the group's offsets were deleted, have expired, or were deleted together "
        f"with an earlier topic {partition.topic}.",
        "Give each transformer a target of its own. After a new name, use a new target too, or delete the old topic. "
        "To continue a lost group, commit its offset again (kafka-consumer-groups --reset-offsets).",
    )


def target_partitions(topic: str, found: int, wanted: int, source: str) -> CdcError:
    """Return CdcError(TOPIC_SETTINGS) for a target topic with another number of partitions than its source."""
    return CdcError(
        Code.TOPIC_SETTINGS,
        f"The target topic {topic} has {found} partitions, and its source {source} has {wanted}: messages of one key "
        "would be in different order.",
        "Delete the target topic, which the transformer creates, or choose another target.",
    )


class StreamFaults(Faults):
    """The errors of source partitions."""

    words = Words("transformer", "partition", "source topic", "transform", "transformed")

    def topic_changed(self, topic: str, known: TopicShape, now: TopicShape) -> CdcError:
        problem = f"has {now.partitions} partitions now; it had {known.partitions}"
        if known.topic_id != now.topic_id:
            problem = "was deleted and recreated"
        return CdcError(
            Code.TRANSFORM_SOURCE,
            f"The source topic {topic} {problem}.",
            "Keys may have moved, or messages are lost. Give the transformer another name and another target: it reads "
            "the topic from the beginning then.",
        )

    def messages_deleted(self, partition: SourcePartition, offset: int) -> CdcError:
        return CdcError(
            Code.TRANSFORM_SOURCE,
            f"The messages of {partition} from offset {offset} on were deleted before they were read, or the topic was "
            "recreated.",
            "Raise the topic's retention. To continue with what is there, reset the group's offset to the earliest "
            "(kafka-consumer-groups --reset-offsets); to be complete, use another transformer name and another target.",
        )


STREAM_FAULTS = StreamFaults()

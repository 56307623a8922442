"""What passes between the modules: streams, their messages, and the plan of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.records import SourcePartition, TopicShape
from transformer.definition import Transformer
from transformer.settings import TransformerSettings


class SourceRecord(NamedTuple):
    """A message as it is read; `value` None is a tombstone."""

    key: bytes | None
    value: bytes | None
    offset: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A transformer's way from one source topic to its target.

    number: the transformer's, in the file. pii: the source's personal columns. newest_id: the id of the newest schema
    of the topic's values, in which all columns exist that the steps name.
    """

    number: int
    topic: str
    shape: TopicShape
    newest_id: int
    pii: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Definitions:
    """What does not change while the job runs. It has secrets: task_pickle sends it once."""

    transformers: tuple[Transformer, ...]
    kafka: KafkaSettings
    registry: RegistrySettings
    settings: TransformerSettings

    def group(self, transformer: Transformer) -> str:
        """The consumer group whose committed offsets are the transformer's position."""
        return f"{self.settings.group_id}.{transformer.name}"


@dataclass(frozen=True, slots=True)
class TransformPlan:
    """The plan of a batch. The driver's name of a stream is `<transformer>/<source topic>`, since a topic may have
    several transformers. shapes: of every stream, those that cannot be planned included.
    """

    definitions: Definitions
    streams: Mapping[str, Stream]
    shapes: Mapping[str, TopicShape]

    def transformer(self, stream: Stream) -> Transformer:
        return self.definitions.transformers[stream.number]


def stream_name(transformer: Transformer, topic: str) -> str:
    """Kafka allows no slash in the names of topics."""
    return f"{transformer.name}/{topic}"


def kafka_partition(partition: SourcePartition) -> SourcePartition:
    """The partition of Kafka that is one of a stream."""
    return SourcePartition(partition.topic.partition("/")[2], partition.partition)

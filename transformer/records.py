"""Records that pass between the modules: streams, their messages, and the plan of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.records import Share, SourcePartition, TopicShape
from transformer.definition import Transformer
from transformer.settings import TransformerSettings


@dataclass(frozen=True, slots=True)
class Stream:
    """A transformer's way from one source topic to its target."""

    # The transformer's number, in the file.
    number: int
    # The source topic.
    topic: str
    # The source topic's id and number of partitions.
    shape: TopicShape
    # The id of the newest schema of the topic's values, in which all columns exist that the steps name.
    newest_id: int
    # The source's personal columns.
    pii: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions and settings, which do not change while the job runs. They have secrets: task_pickle sends them
    once.
    """

    # The transformers, in the order of the file.
    transformers: tuple[Transformer, ...]
    # Settings of Kafka.
    kafka: KafkaSettings
    # Settings of the registry.
    registry: RegistrySettings
    # Settings of the job.
    settings: TransformerSettings

    def group(self, transformer: Transformer) -> str:
        """The consumer group whose committed offsets are the transformer's position."""
        return self.group_of(transformer.name)

    def group_of(self, name: str) -> str:
        """The consumer group of the transformer of this name."""
        return f"{self.settings.group_id}.{name}"


@dataclass(frozen=True, slots=True)
class TransformPlan:
    """The plan of a batch."""

    # The definitions and settings.
    definitions: Definitions
    # The streams that are planned, by name.
    streams: Mapping[str, Stream]
    # A share for each partition of every stream, also of those that cannot be planned.
    shares: tuple[Share, ...]

    def transformer(self, stream: Stream) -> Transformer:
        return self.definitions.transformers[stream.number]


def stream_name(transformer: Transformer, topic: str) -> str:
    """The name of a stream, which an operator sees. Several transformers may read one topic."""
    return f"{transformer.name}/{topic}"


def stream_share(transformer: Transformer, topic: str, partition: int) -> Share:
    """The share of one partition of a stream."""
    source = SourcePartition(topic, partition)
    return Share(stream_name(transformer, topic), (source,), str(source), transformer.name)

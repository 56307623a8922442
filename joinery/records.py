"""Records that pass between the modules of the job: stages of joins, and the plan of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_common.settings import KafkaSettings, RegistrySettings
from joinery.definition import Join
from joinery.planning.plan import JoinPlan
from joinery.settings import JoinerySettings
from stream_runtime.records import Share, SourcePartition, TopicShape


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions and settings, which do not change while the job runs. They have secrets: task_pickle sends them
    once.
    """

    # The joins, in the order of the file.
    joins: tuple[Join, ...]
    # Settings of Kafka.
    kafka: KafkaSettings
    # Settings of the registry.
    registry: RegistrySettings
    # Settings of the job.
    settings: JoinerySettings

    def route_group(self, join: str) -> str:
        """The consumer group whose offsets are the position of a join in its inputs."""
        return f"{self.settings.group_id}.{join}"

    def internal_topic(self, join: Join) -> str:
        """The name of the internal topic of a join."""
        return f"{self.settings.group_id}.{join.name}.internal"


@dataclass(frozen=True, slots=True)
class Stage:
    """A join that is planned, with its topics and schemas."""

    # The plan.
    plan: JoinPlan
    # The shape of each input's topic.
    sources: Mapping[str, TopicShape]
    # The internal topic.
    internal: str
    # The shape of the internal topic.
    internal_shape: TopicShape
    # The target's topic, with as many partitions.
    target: str
    # The registry's id of the schema of joined keys.
    key_id: int
    # The registry's id of the schema of joined changes.
    value_id: int

    def numbers_of(self, topic: str) -> list[int]:
        """The numbers of the inputs that a topic is of."""
        return [number for number, given in enumerate(self.plan.inputs) if given.schema.topic == topic]


@dataclass(frozen=True, slots=True)
class JoineryPlan:
    """The plan of a batch."""

    # The definitions and settings.
    definitions: Definitions
    # The joins that are planned, by name.
    stages: Mapping[str, Stage]
    # All shares: first those that route, then those that join.
    shares: tuple[Share, ...]

    def stage_of(self, share: Share) -> Stage:
        """The stage of a share."""
        return self.stages[join_of(share)]


def route_share(join: str, source: SourcePartition) -> Share:
    """The share that routes the messages of a source partition."""
    return Share(f"{join}/{source.topic}", (source,), str(source), join)


def join_share(join: str, internal: SourcePartition) -> Share:
    """The share that joins the messages of a partition of the internal topic."""
    return Share(f"{join}/", (internal,), str(internal))


def routes(share: Share) -> bool:
    """Whether a share routes; otherwise it joins."""
    return bool(share.reader)


def join_of(share: Share) -> str:
    """The name of a share's join."""
    return share.stream.partition("/")[0]

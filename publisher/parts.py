"""The publisher's parts in two groups: those beside its node, and those that talk to Kafka."""

from __future__ import annotations

from dataclasses import dataclass, field

from publisher.inflight import InFlight
from publisher.kafka.sender import Sender
from publisher.log.position import Positions
from publisher.log.segment_disposal import SegmentDisposal
from publisher.log.spool import Spool
from publisher.log.tail import SegmentTails
from publisher.losses.loss_watch import LossWatch
from publisher.mutations.quarantine import Quarantine
from publisher.snapshot.supervisor import Supervisor
from publisher.tables.node_schema import NodeSchema
from publisher.topics.raw_topics import RawTopics
from publisher.topics.waiting import WaitingTables


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The node's log and schema, and the publisher's own files beside it."""

    # The node's host id (16 bytes).
    host_id: bytes
    # The schema as the node shows it.
    schema: NodeSchema
    # Reads the segments of the log.
    tails: SegmentTails
    # The stored positions up to which the log is published.
    positions: Positions
    # The mutations that could not be decoded.
    quarantine: Quarantine
    # The folder for segments while Kafka is away.
    spool: Spool
    # Deletes segments that are published.
    disposal: SegmentDisposal
    # Looks for changes that are lost.
    loss_watch: LossWatch
    # Runs the snapshots of tables.
    snapshots: Supervisor
    # The tables that wait.
    waiting: WaitingTables
    # the least time between truncations of a table that are all announced to the materializer
    settle_seconds: float
    # After this time a write is durable, and shown in cdc_raw; None if that takes as long as a segment lasts.
    durable_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class KafkaParts:
    """The parts that send to Kafka."""

    # Sends raw messages.
    sender: Sender
    # The raw topics of the published tables.
    raw_topics: RawTopics
    # The messages that are not acknowledged yet.
    in_flight: InFlight = field(default_factory=InFlight)

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

    host_id: bytes
    schema: NodeSchema
    tails: SegmentTails
    positions: Positions
    quarantine: Quarantine
    spool: Spool
    disposal: SegmentDisposal
    loss_watch: LossWatch
    snapshots: Supervisor
    waiting: WaitingTables
    # the least time between truncations of a table that are all announced to the materializer
    settle_seconds: float
    # After this time a write is durable, and shown in cdc_raw; None if that takes as long as a segment lasts.
    durable_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class KafkaParts:
    """The sender, the raw topics, and the messages that are not acknowledged yet."""

    sender: Sender
    raw_topics: RawTopics
    in_flight: InFlight = field(default_factory=InFlight)

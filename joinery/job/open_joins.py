"""The shares of joins that a worker has open: the protocol of each, with a state or without one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from joinery.catalogue import open_catalogue
from joinery.faults import JOIN_FAULTS, written_already
from joinery.job.join_processor import JoinProcessor
from joinery.job.router import Router
from joinery.records import JoineryPlan, Stage, routes
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.partition_task import PartitionTask, TaskSettings
from stream_runtime.exactly_once.position import decode
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.stateless_task import Done, StatelessSettings, StatelessTask
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.kafka import PRODUCER_DEFAULTS
from stream_runtime.records import Record, SourcePartition
from stream_runtime.state.snapshots import in_background
from stream_runtime.worker.open_resources import Opening, open_resources
from stream_runtime.worker.open_shares import OpenShares
from stream_runtime.worker.open_stateless import StatelessOpening, open_stateless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from joinery.catalogue import Catalogue
    from joinery.records import Definitions
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.kafka.source_reader import Read, SourceReader
    from stream_runtime.records import Share, SourceRecord, TopicShape


class OpenRoute(NamedTuple):
    """An open share that routes."""

    # The stage of its join.
    stage: Stage
    # The partition that is read.
    source: SourcePartition
    # Its protocol.
    task: StatelessTask
    # Makes its messages.
    router: Router

    @property
    def shapes(self) -> dict[SourcePartition, TopicShape]:
        return {self.source: self.stage.sources[self.source.topic]}

    def close(self) -> None:
        self.task.close()


class OpenJoin(NamedTuple):
    """An open share that joins."""

    # The stage of its join.
    stage: Stage
    # The partition of the internal topic that is read.
    source: SourcePartition
    # Its protocol.
    task: PartitionTask
    # Makes its messages.
    processor: JoinProcessor

    @property
    def shapes(self) -> dict[SourcePartition, TopicShape]:
        return {self.source: self.stage.internal_shape}

    def close(self) -> None:
        self.task.close()


_Open: TypeAlias = OpenRoute | OpenJoin


class OpenJoins(OpenShares[JoineryPlan, _Open]):
    """Each share has one partition. One consumer for the inputs of each join, and one for all internal topics."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(definitions.kafka, JOIN_FAULTS, readers=len(definitions.joins) + 1)
        self._definitions = definitions
        self._catalogue: Catalogue | None = None
        settings = definitions.settings
        self._chunk = ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, math.inf)
        self._opening = StatelessOpening(
            definitions.kafka,
            StatelessSettings(self._chunk, settings.offset_refresh_hours * 3600),
            PRODUCER_DEFAULTS._replace(transaction_seconds=settings.transaction_timeout_seconds),
            JOIN_FAULTS,
        )

    def group(self, reader: str) -> str:
        return self._definitions.route_group(reader) if reader else self._definitions.settings.group_id

    def is_planned(self, plan: JoineryPlan, share: Share, opened: _Open) -> bool:
        return plan.stage_of(share) == opened.stage

    def open_share(self, plan: JoineryPlan, share: Share, reader: SourceReader) -> _Open:
        stage = plan.stage_of(share)
        return self._open_route(stage, share, reader) if routes(share) else self._open_join(stage, share, reader)

    def in_hand(self, share: Share, read: Read) -> Sequence[SourceRecord]:
        return read.records.get(share.partition, ())

    def process(self, share: Share, read: Read) -> Done:
        opened, records = self._open[share], self.in_hand(share, read)
        if isinstance(opened, OpenJoin):
            return Done(self._join(opened, records))
        following = read.following.get(opened.source)
        done = Done()
        if records:
            assert following is not None
            done = opened.task.process(opened.source, records, following, opened.router.route_chunk)
        else:
            opened.task.rest(opened.source, following)
        if done.error is None and not opened.router.is_marked:
            _mark(opened)
        return done

    def close_all(self) -> None:
        super().close_all()
        if self._catalogue is not None:
            self._catalogue.close()

    def _open_route(self, stage: Stage, share: Share, reader: SourceReader) -> OpenRoute:
        source = share.partition
        if self._catalogue is None:
            self._catalogue = open_catalogue(self._definitions.registry)
        _, end = self._topics.bounds([source])[source]
        router = Router(stage, source, self._catalogue, end)
        shapes = {source: stage.sources[source.topic]}
        task = open_stateless(self._opening, self.group(share.reader), share, shapes, reader)
        return OpenRoute(stage, source, task, router)

    def _open_join(self, stage: Stage, share: Share, reader: SourceReader) -> OpenJoin:
        internal, settings = share.partition, self._definitions.settings
        reach(FaultPoint.BEFORE_INIT)
        opening = Opening(JOIN_FAULTS, in_background)
        resources = open_resources(self._definitions.kafka, settings, share, reader, opening)
        try:
            stored = resources.commits.read()[internal]
            if stored is None:
                self._check_unwritten(SourcePartition(stage.target, internal.partition), internal)
            else:
                decode(stored.offset, stored.metadata, internal, JOIN_FAULTS)
            task = PartitionTask(internal, resources, TaskSettings(self._chunk, faults=JOIN_FAULTS, has_gaps=True))
            reader.add(internal, None if stored is None else stored.offset)
        except BaseException:
            resources.close()  # it holds a lock of the local state
            raise
        return OpenJoin(stage, internal, task, JoinProcessor(stage, internal, settings.chunk_max_bytes))

    def _check_unwritten(self, target: SourcePartition, internal: SourcePartition) -> None:
        """Raise CdcError JOIN_REPEATED if the target has had messages: those of this group would double them."""
        _, following = self._topics.bounds([target])[target]
        if following:
            raise written_already(self._definitions.settings.group_id, internal, target.topic)

    def _join(self, opened: OpenJoin, records: Sequence[SourceRecord]) -> Report:
        if not records:
            return NOTHING_DONE
        found = [Record(record.key or b"", record.value or b"", record.offset, 0) for record in records]
        report = opened.task.process(found, opened.processor)
        return report._replace(state=report.state._replace(bytes=opened.task.state_bytes()))


def _mark(opened: OpenRoute) -> None:
    """Send the marks once the messages are routed that the source had when the share was opened. An earlier task may
    have sent them: then they change nothing.
    """
    if opened.task.position(opened.source) >= opened.router.end:
        opened.task.send(opened.source, opened.router.marks())
        opened.router.is_marked = True

"""The shares that a worker has open: their readers, and the protocol of each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import structlog

from cdc_common.errors.codes import CdcError
from joinery.catalogue import open_catalogue
from joinery.faults import JOIN_FAULTS, written_already
from joinery.job.join_processor import JoinProcessor
from joinery.job.router import Router
from joinery.records import Stage, routes
from stream_runtime.errors import trace_of
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.partition_task import PartitionTask, TaskSettings
from stream_runtime.exactly_once.position import decode
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.stateless_task import Done, StatelessSettings, StatelessTask
from stream_runtime.fault_points import FaultPoint, StatelessPoint, reach
from stream_runtime.kafka import PRODUCER_DEFAULTS, Topics
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import Record, SourcePartition
from stream_runtime.state.snapshots import in_background
from stream_runtime.worker.open_resources import Opening, open_resources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from joinery.catalogue import Catalogue
    from joinery.records import Definitions, JoineryPlan
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share, SourceRecord, TopicShape

_logger = structlog.get_logger(__name__)


class OpenRoute(NamedTuple):
    """An open share that routes."""

    # The stage of its join.
    stage: Stage
    # Its protocol.
    task: StatelessTask
    # Makes its messages.
    router: Router


class OpenJoin(NamedTuple):
    """An open share that joins."""

    # The stage of its join.
    stage: Stage
    # Its protocol.
    task: PartitionTask
    # Makes its messages.
    processor: JoinProcessor


_Open: TypeAlias = OpenRoute | OpenJoin


class OpenShares:
    """Opens and closes shares, and works on them. One consumer for the inputs of each join, and one for all joins."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._topics = Topics(definitions.kafka)
        self._catalogue: Catalogue | None = None
        self._readers: dict[str, SourceReader] = {}
        self._open: dict[Share, _Open] = {}
        settings = definitions.settings
        self._chunk = ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, math.inf)
        self._limits = PRODUCER_DEFAULTS._replace(transaction_seconds=settings.transaction_timeout_seconds)

    @property
    def shares(self) -> set[Share]:
        return set(self._open)

    def of_reader(self, reader: str) -> list[Share]:
        """The open shares of a reader: a join's, or the empty name for those that join."""
        return [share for share in self._open if share.reader == reader]

    def keep(self, plan: JoineryPlan, shares: Collection[Share]) -> None:
        """Close all but these, and those whose stages have changed."""
        for share, opened in list(self._open.items()):
            if share not in shares or plan.stage_of(share) != opened.stage:
                self.close(share)

    def open(self, plan: JoineryPlan, share: Share) -> None:
        """Step 1 of the protocol. CdcError, KafkaException."""
        stage = plan.stage_of(share)
        self._open[share] = self._open_route(stage, share) if routes(share) else self._open_join(stage, share)

    def read(self, most: int, seconds: float) -> Iterator[tuple[str, Read | CdcError]]:
        """Step 2: read with each consumer, in so many seconds together."""
        readers = {name: reader for name, reader in self._readers.items() if self.of_reader(name)}
        for name, reader in readers.items():
            try:
                read = reader.read(max(1, most // len(readers)), seconds / len(readers))
            except CdcError as error:
                yield name, error
            else:
                reach(StatelessPoint.POLLED)
                yield name, check_sources(read, self._shapes(name), self._topics, JOIN_FAULTS)

    def process(self, share: Share, records: Sequence[SourceRecord], following: int | None) -> Done:
        """Step 3. NotOwnerError asks to open the share again."""
        opened, partition = self._open[share], share.partition
        if isinstance(opened, OpenJoin):
            return Done(self._join(opened, records))
        if not records:
            opened.task.rest(partition, following)
            return Done()
        assert following is not None
        return opened.task.process(
            partition, records, following, lambda chunk: opened.router.route_chunk(partition, chunk)
        )

    def close(self, share: Share) -> None:
        """A failure to close concerns this share only, which is opened from its committed offset next time."""
        opened = self._open.pop(share, None)
        if opened is None:
            return
        try:
            self._readers[share.reader].remove(share.partition)
            opened.task.close()
        except Exception as error:  # noqa: BLE001 - the other shares must stay open
            _logger.warning("partition not closed cleanly", trace=trace_of(error))

    def close_all(self) -> None:
        for share in list(self._open):
            self.close(share)
        for reader in self._readers.values():
            reader.close()
        if self._catalogue is not None:
            self._catalogue.close()

    def _open_route(self, stage: Stage, share: Share) -> OpenRoute:
        source, reader = share.partition, self._reader(share.reader)
        if self._catalogue is None:
            self._catalogue = open_catalogue(self._definitions.registry)
        router = Router(stage, source.topic, self._catalogue)
        reach(StatelessPoint.TASK_OPENING)
        group = self._definitions.route_group(share.reader)
        commits = KafkaCommits(
            self._definitions.kafka, group, share, reader, self._limits, before_commit=StatelessPoint.OFFSET_SENT
        )
        settings = StatelessSettings(self._chunk, self._definitions.settings.offset_refresh_hours * 3600)
        task = StatelessTask(commits, settings, {source: stage.sources[source.topic]}, JOIN_FAULTS)
        reader.add(source, task.offset(source))
        return OpenRoute(stage, task, router)

    def _open_join(self, stage: Stage, share: Share) -> OpenJoin:
        internal, reader, settings = share.partition, self._reader(share.reader), self._definitions.settings
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
        return OpenJoin(stage, task, JoinProcessor(stage, internal, settings.chunk_max_bytes))

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

    def _shapes(self, reader: str) -> dict[SourcePartition, TopicShape]:
        """The shape that each of a reader's open partitions is bound to."""
        return {share.partition: _shape_of(share, self._open[share].stage) for share in self.of_reader(reader)}

    def _reader(self, name: str) -> SourceReader:
        reader = self._readers.get(name)
        if reader is None:
            group = self._definitions.route_group(name) if name else self._definitions.settings.group_id
            readers = len(self._definitions.joins) + 1
            reader = SourceReader(self._definitions.kafka, group, JOIN_FAULTS, readers=readers)
            self._readers[name] = reader
        return reader


def _shape_of(share: Share, stage: Stage) -> TopicShape:
    return stage.sources[share.partition.topic] if routes(share) else stage.internal_shape

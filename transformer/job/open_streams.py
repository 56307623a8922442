"""The shares that a worker has open: their producers, readers and routes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of
from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.stateless_task import Done, StatelessSettings, StatelessTask
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.kafka import PRODUCER_DEFAULTS, Topics, read_partition
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader
from transformer.definition import Transformer
from transformer.faults import STREAM_FAULTS, published_already
from transformer.records import Stream
from transformer.routing.catalogue import open_catalogue
from transformer.routing.routes import Routes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share, SourcePartition, SourceRecord, TopicShape
    from transformer.records import Definitions, TransformPlan
    from transformer.routing.catalogue import Catalogue
    from transformer.routing.routes import MakeTopic

from stream_runtime.exactly_once.stateless_task import Transformed

_logger = structlog.get_logger(__name__)
_ADDED_BYTES = 65_536  # by hashes and names, of both images


class _Open(NamedTuple):
    """A share that is open."""

    stream: Stream
    transformer: Transformer
    task: StatelessTask
    routes: Routes


class OpenStreams:
    """Opens and closes shares, and works on them. One consumer for each transformer."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._topics = Topics(definitions.kafka)
        self._catalogue: Catalogue | None = None
        self._readers: dict[str, SourceReader] = {}
        self._routes: dict[Stream, Routes] = {}
        self._unsure: set[Stream] = set()  # whose targets may have been deleted: a share was closed
        self._open: dict[Share, _Open] = {}
        self._checked: dict[Share, set[SourcePartition]] = {}
        settings = definitions.settings
        chunk = ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, math.inf)
        self._settings = StatelessSettings(chunk, settings.offset_refresh_hours * 3600)
        self._limits = PRODUCER_DEFAULTS._replace(transaction_seconds=settings.transaction_timeout_seconds)

    @property
    def shares(self) -> set[Share]:
        return set(self._open)

    def of_transformer(self, name: str) -> list[Share]:
        """Return the transformer's open shares."""
        return [share for share in self._open if share.reader == name]

    def keep(self, plan: TransformPlan, shares: Collection[Share]) -> None:
        """Close all but these, and those whose streams have changed."""
        for share, opened in list(self._open.items()):
            if share not in shares or plan.streams.get(share.stream) != opened.stream:
                self.close(share)
        current = set(plan.streams.values())
        self._routes = {stream: routes for stream, routes in self._routes.items() if stream in current}
        self._unsure &= current

    def open(self, plan: TransformPlan, share: Share) -> None:
        """Step 1 of the protocol. CdcError, KafkaException."""
        stream = plan.streams[share.stream]
        transformer = plan.transformer(stream)
        source = share.partition
        routes = self._routes_of(transformer, stream)  # before anything that would have to be closed
        routes.forget(source.partition)
        reader = self._reader(transformer)
        reach(StatelessPoint.TASK_OPENING)
        group = self._definitions.group(transformer)
        commits = KafkaCommits(
            self._definitions.kafka, group, share, reader, self._limits, before_commit=StatelessPoint.OFFSET_SENT
        )
        task = StatelessTask(commits, self._settings, {source: stream.shape}, STREAM_FAULTS)
        reader.add(source, task.offset(source))
        self._open[share] = _Open(stream, transformer, task, routes)

    def read(self, most: int, seconds: float) -> Iterator[tuple[str, Read | CdcError]]:
        """Step 2: read with the consumer of each transformer, in so many seconds together."""
        readers = {name: reader for name, reader in self._readers.items() if self.of_transformer(name)}
        for name, reader in readers.items():
            try:
                read = reader.read(max(1, most // len(readers)), seconds / len(readers))
            except CdcError as error:
                yield name, error
            else:
                reach(StatelessPoint.POLLED)
                yield name, check_sources(read, self._shapes(name), self._topics, STREAM_FAULTS)

    def process(self, share: Share, records: Sequence[SourceRecord], following: int | None) -> Done:
        """Step 3."""
        opened = self._open[share]
        if not records:
            opened.task.rest(share.partition, following)
            return Done()
        assert following is not None
        checked = self._checked.setdefault(share, set())

        def check_target(target: SourcePartition) -> None:
            if opened.task.is_new(share.partition) and target not in checked:
                if self._has_had_messages(target):
                    group = self._definitions.group(opened.transformer)
                    raise published_already(group, share.partition, target.topic)
                checked.add(target)

        def transform(chunk: Sequence[SourceRecord]) -> Transformed:
            return opened.routes.transform_chunk(chunk, share.partition.partition, check_target)

        return opened.task.process(share.partition, records, following, transform)

    def close(self, share: Share) -> None:
        """A failure to close concerns this share only, which is opened from its committed offset next time."""
        opened = self._open.pop(share, None)
        self._checked.pop(share, None)
        if opened is None:
            return
        self._unsure.add(opened.stream)
        try:
            self._readers[opened.transformer.name].remove(share.partition)
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

    def _has_had_messages(self, target: SourcePartition) -> bool:
        """Return whether the target has had messages, also those that retention has deleted. Markers of aborted
        transactions alone are none.
        """
        if next(read_partition(self._definitions.kafka, *target), None) is not None:  # waits for a leader
            return True
        first, _ = self._topics.bounds([target])[target]
        return first > 0

    def _shapes(self, transformer: str) -> dict[SourcePartition, TopicShape]:
        """The shape that each of its open partitions is bound to."""
        return {share.partition: self._open[share].stream.shape for share in self.of_transformer(transformer)}

    def _reader(self, transformer: Transformer) -> SourceReader:
        reader = self._readers.get(transformer.name)
        if reader is None:
            group = self._definitions.group(transformer)
            readers = len(self._definitions.transformers)
            reader = SourceReader(self._definitions.kafka, group, STREAM_FAULTS, readers=readers)
            self._readers[transformer.name] = reader
        return reader

    def _routes_of(self, transformer: Transformer, stream: Stream) -> Routes:
        routes = self._routes.get(stream)
        if routes is None:
            if self._catalogue is None:
                self._catalogue = open_catalogue(self._definitions.registry)
            make_topic = self._topic_maker(stream.topic)
            routes = self._routes[stream] = Routes(transformer, stream, self._catalogue, make_topic)
        elif stream in self._unsure:
            routes.make_targets()
        self._unsure.discard(stream)
        return routes

    def _topic_maker(self, source: str) -> MakeTopic:
        """Target topics take messages as large as the source does, and what steps add to them."""

        def make_topic(topic: str, partitions: int, *, is_keyed: bool) -> int:
            limit = self._topics.max_message_bytes(source) + _ADDED_BYTES
            made = self._topics.make_change_topic(topic, partitions, is_keyed=is_keyed, max_message_bytes=limit)
            return made.partitions

        return make_topic

"""The shares that a worker has open: their protocols and routes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.exactly_once.chunks import ChunkSettings
from stream_runtime.exactly_once.stateless_task import Done, StatelessSettings, StatelessTask
from stream_runtime.kafka import PRODUCER_DEFAULTS, read_partition
from stream_runtime.records import SourcePartition
from stream_runtime.worker.open_shares import OpenShares
from stream_runtime.worker.open_stateless import StatelessOpening, open_stateless
from transformer.definition import Transformer
from transformer.faults import STREAM_FAULTS, published_already
from transformer.records import Stream, TransformPlan
from transformer.routing.catalogue import open_catalogue
from transformer.routing.routes import Routes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.exactly_once.stateless_task import Transformed
    from stream_runtime.kafka.source_reader import Read, SourceReader
    from stream_runtime.records import Share, SourceRecord, TopicShape
    from stream_runtime.worker.task import Assignment
    from transformer.records import Definitions
    from transformer.routing.catalogue import Catalogue
    from transformer.routing.routes import MakeTopic

_ADDED_BYTES = 65_536  # by hashes and names, of both images


class OpenStream(NamedTuple):
    """An open share of a stream."""

    # The stream.
    stream: Stream
    # Its transformer.
    transformer: Transformer
    # The partition that is read.
    source: SourcePartition
    # Its protocol.
    task: StatelessTask
    # The ways of its messages.
    routes: Routes

    @property
    def shapes(self) -> dict[SourcePartition, TopicShape]:
        return {self.source: self.stream.shape}

    def close(self) -> None:
        self.task.close()


class OpenStreams(OpenShares[TransformPlan, OpenStream]):
    """Each share has one partition. One consumer for each transformer."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(definitions.kafka, STREAM_FAULTS, readers=len(definitions.transformers))
        self._definitions = definitions
        self._catalogue: Catalogue | None = None
        self._routes: dict[Stream, Routes] = {}
        self._unsure: set[Stream] = set()  # whose targets may have been deleted: a share was closed
        self._checked: dict[Share, set[SourcePartition]] = {}
        settings = definitions.settings
        chunk = ChunkSettings(settings.chunk_max_bytes, settings.chunk_max_messages, math.inf)
        self._opening = StatelessOpening(
            definitions.kafka,
            StatelessSettings(chunk, settings.offset_refresh_hours * 3600),
            PRODUCER_DEFAULTS._replace(transaction_seconds=settings.transaction_timeout_seconds),
            STREAM_FAULTS,
        )

    def group(self, reader: str) -> str:
        return self._definitions.group_of(reader)

    def keep(self, plan: TransformPlan, assignment: Assignment) -> None:
        super().keep(plan, assignment)
        current = set(plan.streams.values())
        self._routes = {stream: routes for stream, routes in self._routes.items() if stream in current}
        self._unsure &= current

    def is_planned(self, plan: TransformPlan, share: Share, opened: OpenStream) -> bool:
        return plan.streams.get(share.stream) == opened.stream

    def open_share(self, plan: TransformPlan, share: Share, reader: SourceReader) -> OpenStream:
        stream, source = plan.streams[share.stream], share.partition
        transformer = plan.transformer(stream)
        routes = self._routes_of(transformer, stream)  # before anything that would have to be closed
        routes.forget(source.partition)
        task = open_stateless(
            self._opening, self._definitions.group(transformer), share, {source: stream.shape}, reader
        )
        return OpenStream(stream, transformer, source, task, routes)

    def in_hand(self, share: Share, read: Read) -> Sequence[SourceRecord]:
        return read.records.get(share.partition, ())

    def process(self, share: Share, read: Read) -> Done:
        opened, source = self._open[share], share.partition
        records, following = self.in_hand(share, read), read.following.get(source)
        if not records:
            opened.task.rest(source, following)
            return Done()
        assert following is not None
        checked = self._checked.setdefault(share, set())

        def check_target(target: SourcePartition) -> None:
            if opened.task.is_new(source) and target not in checked:
                if self._has_had_messages(target):
                    group = self._definitions.group(opened.transformer)
                    raise published_already(group, source, target.topic)
                checked.add(target)

        def transform(chunk: Sequence[SourceRecord]) -> Transformed:
            return opened.routes.transform_chunk(chunk, source.partition, check_target)

        return opened.task.process(source, records, following, transform)

    def close(self, share: Share) -> None:
        self._checked.pop(share, None)
        if share in self._open:
            self._unsure.add(self._open[share].stream)
        super().close(share)

    def close_all(self) -> None:
        super().close_all()
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

"""Plans each batch on the driver: the topics of each transformer's source, and whether its steps fit their schemas."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.driver.chosen_topics import LOOK_SECONDS, AwayTopics
from stream_runtime.errors import trace_of, unexpected
from stream_runtime.kafka import Topics
from transformer.errors import StepError
from transformer.faults import STREAM_FAULTS, step_does_not_fit
from transformer.job.worker_loop import TransformTask
from transformer.records import Stream, TransformPlan, stream_name, stream_share
from transformer.steps.derive import SourceTopic, derive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from stream_runtime.records import Share, TopicShape
    from transformer.definition import Transformer
    from transformer.records import Definitions
    from transformer.routing.catalogue import Catalogue

_logger = structlog.get_logger(__name__)


class StreamPlanner:
    """stream_runtime.driver.driver.Plans. While the registry does not answer, its last answers are used.

    A stream with an error is not planned again before `retry`.
    """

    def __init__(
        self, definitions: Definitions, catalogue: Catalogue, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.errors: dict[str, CdcError] = {}
        self._definitions = definitions
        self._catalogue = catalogue
        self._clock = clock
        self._sources: dict[str, tuple[int, str]] = {}  # the number of the transformer, and the topic
        self._without_topics: dict[str, tuple[int, str]] = {}  # the same, with the name of the source
        self._streams: dict[str, Stream] = {}
        self._shapes: dict[str, TopicShape] = {}
        self._next_look = -1.0
        self._stale: set[str] = set()  # streams whose topics may have another shape by now
        self._waits: set[str] = set()
        self._away = AwayTopics(clock)

    @cached_property
    def _topics(self) -> Topics:
        """Made when it is needed: a check of steps asks the registry alone."""
        return Topics(self._definitions.kafka)

    @property
    def pending(self) -> set[str]:
        """Streams without a plan so far: the registry has not answered about them."""
        return self._shapes.keys() - self._streams.keys() - self.errors.keys()

    def plan_batch(self) -> TransformPlan:
        """Plan a batch. CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        if is_look := self._clock() >= self._next_look:
            self._next_look = self._clock() + LOOK_SECONDS
            self._find_sources()
        shapes = self._describe()
        for name, shape in shapes.items():
            known = self._streams.get(name)
            if name not in self.errors and (is_look or known is None or known.shape != shape):
                self._guard(name, shape)
        self._shapes = shapes
        streams = {name: stream for name, stream in self._streams.items() if name in shapes}
        shares = [self._share(name, number) for name, shape in shapes.items() for number in range(shape.partitions)]
        return TransformPlan(self._definitions, streams, tuple(shares))

    def first_share(self, stream: str) -> Share:
        return self._share(stream, 0)

    def _share(self, stream: str, partition: int) -> Share:
        number, topic = self._sources.get(stream) or self._without_topics[stream]
        return stream_share(self._definitions.transformers[number], topic, partition)

    def make_task(self, plan: TransformPlan) -> TransformTask:
        return TransformTask(plan)

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these streams again."""
        for name in streams:
            self.errors.pop(name, None)
            self._stale.add(name)
            self._next_look = -1.0

    def check_settings(self) -> None:
        """Raise CdcError(TRANSACTION_TIMEOUT) if the brokers do not allow the settings."""
        self._topics.check_transaction_timeout(self._definitions.settings.transaction_timeout_seconds)

    def check_steps(self) -> None:
        """Raise CdcError if a step does not fit the newest schema of its source. A source that is not there yet is
        logged.
        """
        for transformer in self._definitions.transformers:
            self._check_transformer(transformer)

    @property
    def without_source(self) -> list[str]:
        """The names of transformers whose source was not in the registry when it was asked."""
        return sorted(self._waits)

    def check_any(self) -> None:
        """Check all transformers: CdcError if all have an error, or if the registry does not answer. A single one stops
        alone.
        """
        errors: list[CdcError] = []
        for transformer in self._definitions.transformers:
            try:
                self._check_transformer(transformer)
            except CdcError as error:
                if error.code is Code.REGISTRY_UNREACHABLE:
                    raise
                errors.append(error)
        if len(errors) == len(self._definitions.transformers):
            raise errors[0]

    def _check_transformer(self, transformer: Transformer) -> None:
        topics = self._catalogue.topics(transformer.source)
        if not topics:
            self._log_missing(transformer)
        for topic in topics[-1:]:
            newest = self._catalogue.newest(topic)
            if newest is not None:
                self._check(transformer, SourceTopic(topic, newest.key, newest.value, self._personal(transformer)))

    def _log_missing(self, transformer: Transformer) -> None:
        if transformer.name not in self._waits:
            self._waits.add(transformer.name)
            _logger.warning(
                "transformer waits for its source", transformer=transformer.name, source=str(transformer.source)
            )

    def _personal(self, transformer: Transformer) -> frozenset[str]:
        """Return the source's personal fields, also where nothing masks them: they stay personal in the target."""
        if not (transformer.masks_pii or self._catalogue.knows_personal):
            return frozenset()
        return self._catalogue.personal(transformer.source)

    def _check(self, transformer: Transformer, source: SourceTopic) -> None:
        try:
            derive(transformer, source)
        except StepError as error:
            raise step_does_not_fit(transformer, source.topic, error) from error

    def _find_sources(self) -> None:
        """The streams of all transformers whose sources the registry knows."""
        for number, transformer in enumerate(self._definitions.transformers):
            try:
                topics = self._catalogue.topics(transformer.source)
            except CdcError as error:
                if error.code is Code.REGISTRY_UNREACHABLE:
                    _logger.warning("registry not asked", code=error.code.text, problem=error.problem)
                    return
                self._stop_transformer(number, error)
                continue
            if not topics:
                self._log_missing(transformer)
            self._sources |= {stream_name(transformer, topic): (number, topic) for topic in topics}

    def _stop_transformer(self, number: int, error: CdcError) -> None:
        """Stop the transformer's streams. One without any is stopped by the name of its source."""
        transformer = self._definitions.transformers[number]
        names = [name for name, (of, _) in self._sources.items() if of == number]
        if not names:
            source = str(transformer.source)
            names = [stream_name(transformer, source)]
            self._without_topics[names[0]] = number, source
        for name in names:
            self.errors.setdefault(name, error)

    def _describe(self) -> dict[str, TopicShape]:
        """The shapes of the streams' topics, without those that cannot be described now. One that is away for long is
        an error: it may have been deleted.
        """
        found = self._topics.each_shape(sorted({topic for _, topic in self._sources.values()}))
        shapes: dict[str, TopicShape] = {}
        for name, (_, topic) in self._sources.items():
            shape = found[topic]
            if not isinstance(shape, CdcError):
                shapes[name] = shape
                self._away.came_back(name)
            elif name in self._shapes:
                shapes[name] = self._shapes[name]
                if self._away.is_gone(name):
                    self.errors.setdefault(name, shape)
            elif shape.code is not Code.KAFKA_UNREACHABLE:  # which is also a topic that does not exist yet
                self.errors[name] = shape
        return shapes

    def _guard(self, name: str, shape: TopicShape) -> None:
        """An error concerns the stream alone."""
        try:
            self._plan(name, shape)
        except CdcError as error:
            if error.code is not Code.REGISTRY_UNREACHABLE:
                self.errors[name] = error
            elif name not in self._streams:
                _logger.warning("stream not planned", stream=name, code=error.code.text, problem=error.problem)
        except Exception as error:
            _logger.exception("stream not planned", stream=name, trace=trace_of(error))
            self.errors[name] = unexpected(name, error)

    def _plan(self, name: str, shape: TopicShape) -> None:
        number, topic = self._sources[name]
        known = self._streams.get(name)
        if known is not None and known.shape != shape and name not in self._stale:
            raise STREAM_FAULTS.topic_changed(topic, known.shape, shape)
        transformer = self._definitions.transformers[number]
        newest = self._catalogue.newest(topic)
        if newest is None:
            return  # its first message comes after its schema
        personal = self._personal(transformer)
        made = Stream(number, topic, shape, newest.value_id, personal)
        if made != known:
            self._check(transformer, SourceTopic(topic, newest.key, newest.value, personal))
            self._streams[name] = made
        self._stale.discard(name)

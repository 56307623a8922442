"""Plans each batch on the driver: the raw topics, the schemas of their tables, and their change topics.

The planner reads the tables topic to its end before each batch. A publisher sends a schema and waits for its
acknowledgement before it sends the first raw message that uses it, so the batch's schemas are there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.tables import from_json
from cdc_common.messages.topics import change_topic, table_of, tables_topic, watermarks_topic
from materializer.errors import RAW_FAULTS, changes_of_another_job
from materializer.job.described_topics import DescribedTopics
from materializer.planning.plan import TopicPlan
from materializer.planning.table_forms import table_forms, warn_of_static_rows
from materializer.planning.table_schemas import TableSchemas
from materializer.planning.topic_finder import topic_finder
from materializer.records import RawPartition
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.worker_loop import BatchTask
from stream_runtime.errors import trace_of, unexpected
from stream_runtime.exactly_once.position import Position, check_offset, check_shape, check_topic
from stream_runtime.in_background import InBackground
from stream_runtime.kafka import GroupPositions, TopicReader, Topics, driver_errors
from stream_runtime.records import Share, list_partitions

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from materializer.planning.plan import ChangeTopic, TableSchema
    from materializer.planning.registry import Registry
    from materializer.settings import Settings
    from stream_runtime.records import TopicShape

Positions: TypeAlias = "Mapping[RawPartition, Position | CdcError | None]"

_CHANGE_TOPICS_SECONDS = 10.0  # from one look at the change topics to the next

_logger = structlog.get_logger(__name__)
_PLANS_AT_ONCE = 4  # a plan mostly waits for the registry: some requests for each table
_QUICK_SECONDS = 1.0  # of work with topics that is never saved


class FirstLook(NamedTuple):
    """Facts about raw topics before their first plan."""

    # The errors of some raw topics, by their names.
    errors: Mapping[str, CdcError]
    # The positions of their raw partitions.
    positions: Positions
    # The change topics that had messages, of those whose raw topics have no position at all.
    had_changes: Collection[str]


_NOTHING_NEW = FirstLook({}, {}, ())


class Planner:
    """Makes the plan of each batch. Asks the registry and creates topics only for new tables and schemas.

    errors: the error of each raw topic that cannot be planned. It is not planned again before `retry`.
    patience: how many seconds a batch waits for the plans of new tables and schemas. A registry or a broker that
    hangs delays only these tables.
    must_fit: whether a topic is planned only if all its positions are of its shape. A reshard makes them so.
    """

    def __init__(self, settings: Settings, registry: Registry, patience: float = 1.0, *, must_fit: bool = True) -> None:
        self.errors: dict[str, CdcError] = {}
        self._must_fit = must_fit
        self._kafka = settings.kafka
        self._materializer = settings.materializer
        self._prefix = settings.kafka.topic_prefix
        self._topics = Topics(settings.kafka)
        self._reader = TopicReader(settings.kafka, tables_topic(self._prefix))
        self._positions = GroupPositions(settings.kafka, settings.materializer.group_id, RAW_FAULTS, stable=False)
        self._table_schemas = TableSchemas(self._prefix)
        self._shapes: dict[str, TopicShape] = {}
        self._plans: dict[str, TopicPlan] = {}
        self._stale: set[str] = set()
        self._described_changes = DescribedTopics(self._topics)
        self._change_topics = topic_finder(settings, registry, self._described_changes.make)
        self._is_raw = re.compile(raw_topic_pattern(self._prefix)).match
        self._has_watermarks = False
        self._names: frozenset[str] = frozenset()
        self._described: Mapping[str, TopicShape] = {}
        self._next_description = self._soon = 0.0
        self._asked_at = time.monotonic()
        self._next_look_at_changes = self._asked_at + _CHANGE_TOPICS_SECONDS
        self._kept: set[str] = set()
        self._unpublished: set[str] = set()
        self._plan_making = InBackground[str, TopicPlan](patience, _PLANS_AT_ONCE)

    @property
    def pending(self) -> set[str]:
        """Raw topics whose first plan is still being made."""
        return self._plan_making.running - self._plans.keys()

    @property
    def requests(self) -> Mapping[bytes, int]:
        """See TableSchemas.requests."""
        return self._table_schemas.requests

    def plan_batch(self) -> BatchPlan:
        """Plan a batch. CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        if messages := self._reader.read_to_end():
            self._table_schemas.add(messages)
            self._next_description = min(self._next_description, self._soon)
        shapes = self._follow_topics()
        self._ask_again()
        self._notice_recreated_topics()
        look = self._look_at_new(shapes)
        # Tables that were written to before come first after a restart.
        for topic, shape in sorted(shapes.items(), key=lambda item: item[0] in self._unpublished):
            if topic not in self.errors:
                self._guard(topic, partial(self._start_plan, topic, shape, look))
        for topic, made in self._plan_making.finished().items():
            self._guard(topic, partial(self._take_plan, topic, made))
        return BatchPlan(dict(self._plans), self._kafka, self._materializer, shapes, self._has_watermarks)

    def make_task(self, plan: BatchPlan) -> BatchTask:
        return BatchTask(plan)

    def first_share(self, stream: str) -> Share:
        return Share.of(RawPartition(stream, 0))

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these raw topics again, with the settings, shapes and positions that they have by then:
        after a reshard or a rebuild they fit each other again.
        """
        for topic in streams:
            self.errors.pop(topic, None)
            self._shapes.pop(topic, None)
            self._next_description = 0.0
        self._stale.update(streams)

    def check_registry(self) -> None:
        """Raise CdcError if the job cannot start with the registry."""
        self._change_topics.check_reachable()

    def check_settings(self) -> None:
        """Raise CdcError(TRANSACTION_TIMEOUT) if the brokers do not allow the settings."""
        self._topics.check_transaction_timeout(self._materializer.transaction_timeout_seconds)

    def check_positions(self) -> dict[RawPartition, CdcError]:
        """The raw partitions that could not continue: RAW_SKIPPED, STATE_MISMATCH or RAW_PARTITIONS_CHANGED.

        CdcError for what concerns the whole job.
        """
        shapes = self._describe_topics()
        raw_partitions = list_partitions(shapes)
        positions = self._read_positions(raw_partitions)
        bounds = self._topics.bounds(raw_partitions)
        look = self._look_at_new(shapes, positions)
        for topic, shape in shapes.items():  # it must not change from now on
            self._guard(topic, partial(self._check_shape, topic, shape, look))
        errors: dict[RawPartition, CdcError] = {}
        for raw_partition, position in positions.items():
            try:
                _check_position(raw_partition, position, shapes[raw_partition.topic], bounds[raw_partition])
            except CdcError as error:
                errors[raw_partition] = error
        return errors

    def _ask_again(self) -> None:
        """Ask the registry again from time to time: it may have assigned other topics, for example if a field has
        become personal.
        """
        is_due = time.monotonic() - self._asked_at >= self._materializer.topics_seconds
        if self._materializer.topics == "registry" and is_due:
            self._asked_at = time.monotonic()
            self._stale |= self._plans.keys()

    def _follow_topics(self) -> Mapping[str, TopicShape]:
        """The shapes of the raw topics as they were described last. With very many topics that is not done for each
        batch: it takes at most 5 % of the time, or a fifth while there are new tables.
        """
        began = time.monotonic()
        if began >= self._next_description:
            self._described = self._describe_topics()
            took = time.monotonic() - began
            self._next_description = time.monotonic() + max(0.0, 20 * took - _QUICK_SECONDS)
            self._soon = time.monotonic() + max(0.0, 4 * took - _QUICK_SECONDS)
        return self._described

    def _look_at_new(self, shapes: Mapping[str, TopicShape], positions: Positions | None = None) -> FirstLook:
        """Facts about topics that were not checked yet, asked for all of them at once. A failure is the
        error of each. positions: of all raw partitions, if they have been read.
        """
        new = {topic: shape for topic, shape in shapes.items() if topic not in self._shapes.keys() | self.errors.keys()}
        if not new:
            return _NOTHING_NEW
        usual = {change_topic(self._prefix, *table_of(topic)) for topic in new}
        try:
            self._described_changes.describe(usual & self._names)
            errors = self._topics.check_timestamps(list(new), RAW_FAULTS.words)
            if not self._must_fit:
                return FirstLook(errors, {}, set())
            found = positions if positions is not None else self._read_positions(list_partitions(new))
            cold = [
                topic
                for topic, shape in new.items()
                if not any(found[raw_partition] for raw_partition in list_partitions({topic: shape}))
            ]
            had_changes = self._topics.had_messages([change_topic(self._prefix, *table_of(topic)) for topic in cold])
        except CdcError as error:
            return FirstLook(dict.fromkeys(new, error), {}, set())
        return FirstLook(errors, found, had_changes)

    def _describe_topics(self) -> dict[str, TopicShape]:
        """The shapes of the raw topics, without those that cannot be described now."""
        shapes: dict[str, TopicShape] = {}
        found = self._topics.each_shape(self._find_raw_topics())
        self.errors = {topic: error for topic, error in self.errors.items() if topic in found}
        for topic, shape in found.items():
            if not isinstance(shape, CdcError):
                shapes[topic] = shape
                continue
            if shape.code is not Code.KAFKA_UNREACHABLE:  # a broker that has just started may not know the topic yet
                self.errors[topic] = shape
            if topic in self._shapes:
                shapes[topic] = self._shapes[topic]
        return shapes

    def _find_raw_topics(self) -> list[str]:
        self._names = frozenset(self._topics.partition_counts())
        self._has_watermarks = watermarks_topic(self._prefix) in self._names
        return sorted(filter(self._is_raw, self._names))

    def _guard(self, topic: str, step: Callable[[], None]) -> None:
        """An error of the step concerns the topic alone."""
        try:
            step()
        except CdcError as error:
            self.errors[topic] = error
        except Exception as error:
            _logger.exception("raw topic not planned", topic=topic, trace=trace_of(error))
            self.errors[topic] = unexpected(topic, error)

    def _start_plan(self, topic: str, shape: TopicShape, look: FirstLook) -> None:
        self._check_shape(topic, shape, look)
        schemas = self._table_schemas.for_table(table_of(topic))
        if schemas and (topic in self._stale or not self._has_plan(topic)):
            self._stale.discard(topic)
            self._plan_making.start(topic, partial(self._make_plan, topic, shape, schemas))

    def _make_plan(self, topic: str, shape: TopicShape, schemas: tuple[TableSchema, ...]) -> TopicPlan:
        # A topic that is created now has had no messages, and its partitions may have no leaders yet. The one of the
        # usual name was checked at the first look.
        usual = change_topic(self._prefix, *table_of(topic))
        existing = self._names if topic in self._unpublished else ()
        newest = from_json(schemas[-1].json)
        forms = table_forms(self._materializer, newest)
        change_topics = self._with_shapes(self._change_topics.find_or_create(schemas, forms))
        if topic not in self._plans:
            warn_of_static_rows(newest, forms)
        others = {change.name for change in change_topics if change is not None and change.name != usual}.intersection(
            existing
        )
        for name in self._topics.had_messages(others):
            raise changes_of_another_job(self._materializer.group_id, topic, name)
        self._unpublished.discard(topic)
        names = {change.name for change in change_topics if change is not None}
        limit = self._described_changes.max_message_bytes(names)
        self._described_changes.forget({usual, *names})
        return TopicPlan(shape.partitions, schemas, change_topics, limit, shape.topic_id, forms=forms)

    def _with_shapes(self, change_topics: tuple[ChangeTopic | None, ...]) -> tuple[ChangeTopic | None, ...]:
        """The topics as they are now. One that was deleted since it was found is created again."""
        names = {change.name for change in change_topics if change is not None}
        shapes = self._described_changes.shapes(names, self._names)
        return tuple(change and _with_shape(change, shapes[change.name]) for change in change_topics)

    def _notice_recreated_topics(self) -> None:
        """Plan the raw topics again whose change topics are not those of their plans any more. With very many topics
        that takes at most 5 % of the time.
        """
        began = time.monotonic()
        if began < self._next_look_at_changes:
            return
        planned = {
            raw_topic: {change.name: change.topic_id for change in plan.change_topics if change is not None}
            for raw_topic, plan in self._plans.items()
        }
        shapes = self._topics.each_shape({name for ids in planned.values() for name in ids if name in self._names})
        for raw_topic, ids in planned.items():
            for name, topic_id in ids.items():
                shape = shapes.get(name)
                if shape is None or (not isinstance(shape, CdcError) and shape.topic_id != topic_id):
                    if topic_id:
                        _logger.warning("change topic deleted", code=Code.CHANGE_TOPIC_RECREATED.text, topic=name)
                    self._stale.add(raw_topic)
        took = time.monotonic() - began
        self._next_look_at_changes = time.monotonic() + max(_CHANGE_TOPICS_SECONDS, 20 * took)

    def _take_plan(self, topic: str, made: Future[TopicPlan]) -> None:
        try:
            self._plans[topic] = made.result()
            self._kept.discard(topic)
        except CdcError as error:
            if not self._has_plan(topic):  # otherwise it was made again only to see whether something has changed
                raise
            if topic not in self._kept:
                problem = error.problem
                _logger.warning("plan kept", code=error.code.text, topic=topic, problem=problem, fix=error.fix)
            self._kept.add(topic)

    def _has_plan(self, topic: str) -> bool:
        """Whether the topic has a plan with all schemas of its table."""
        known = self._plans.get(topic)
        return known is not None and known.schemas == self._table_schemas.for_table(table_of(topic))

    def _check_shape(self, topic: str, shape: TopicShape, look: FirstLook) -> None:
        """CdcError also if the changes of a raw topic without any position were published: they would be published
        twice.
        """
        known = self._shapes.get(topic)
        if known is not None:
            check_shape(topic, known, shape, RAW_FAULTS)
            return
        if topic in look.errors:
            raise look.errors[topic]
        if self._must_fit:
            raw_partitions = list_partitions({topic: shape})
            _check_positions_fit(raw_partitions, look.positions, shape)
            if not any(look.positions[raw_partition] for raw_partition in raw_partitions):
                changes = change_topic(self._prefix, *table_of(topic))
                if changes in look.had_changes:
                    raise changes_of_another_job(self._materializer.group_id, topic, changes)
                self._unpublished.add(topic)
        self._shapes[topic] = shape

    def _read_positions(self, raw_partitions: list[RawPartition]) -> Positions:
        with driver_errors(f"read the offsets of the group {self._materializer.group_id}"):
            return self._positions.read_each(raw_partitions)


def _with_shape(topic: ChangeTopic, shape: TopicShape | CdcError) -> ChangeTopic:
    """The topic as it is now. A broker that cannot describe it is asked again at the next look."""
    if isinstance(shape, CdcError):
        return topic._replace(topic_id="")
    return topic._replace(partitions=shape.partitions, topic_id=shape.topic_id)


def _check_positions_fit(raw_partitions: list[RawPartition], positions: Positions, shape: TopicShape) -> None:
    """Raise CdcError if one raw partition of a topic has a position of another shape: then none of them may run. A task
    would take a partition that was added, which has no position, for one of a new topic.
    """
    for raw_partition in raw_partitions:
        position = positions[raw_partition]
        if isinstance(position, Position):
            check_topic(position, shape, raw_partition, RAW_FAULTS)


def _check_position(
    raw_partition: RawPartition, position: Position | CdcError | None, shape: TopicShape, bounds: tuple[int, int]
) -> None:
    """Raise CdcError if the raw partition could not continue at its position."""
    if isinstance(position, CdcError):
        raise position
    if position is not None:
        check_topic(position, shape, raw_partition, RAW_FAULTS)
        check_offset(raw_partition, position.offset, bounds, RAW_FAULTS)


def raw_topic_pattern(prefix: str) -> str:
    """The regular expression of the names of raw topics.

    It does not match the change topic of a keyspace called raw.
    """
    return rf"^{re.escape(prefix)}\.raw\.[^.]+\.[^.]+$"

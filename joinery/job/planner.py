"""Plans each batch on the driver: the schemas of each join's inputs, its topics, and its shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from joinery.faults import JOIN_FAULTS, does_not_fit, target_partitions
from joinery.job.worker_loop import JoineryTask
from joinery.planning.errors import PlanError
from joinery.planning.joined_schema import key_schema, value_schema
from joinery.planning.plan import plan_join
from joinery.records import JoineryPlan, Stage, join_share, route_share
from stream_runtime.errors import trace_of, unexpected
from stream_runtime.kafka import Topics
from stream_runtime.records import Share, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Collection

    from joinery.catalogue import Catalogue
    from joinery.definition import Join
    from joinery.planning.input_schema import InputSchema
    from joinery.records import Definitions
    from stream_runtime.records import TopicShape

_logger = structlog.get_logger(__name__)
_ADDED_BYTES = 65_536  # by what a message of the internal topic has beside an input's columns


class JoinPlanner:
    """stream_runtime.driver.driver.Plans. A join is planned once: newer schemas of its inputs need a restart.

    errors: of joins, by the stream of their shares that join.
    """

    def __init__(self, definitions: Definitions, catalogue: Catalogue, *, takes_new_columns: bool = False) -> None:
        """takes_new_columns: whether `*` stands for columns that joined rows do not have so far."""
        self._takes_new_columns = takes_new_columns
        self.errors: dict[str, CdcError] = {}
        self._definitions = definitions
        self._catalogue = catalogue
        self._topics = Topics(definitions.kafka)
        self._stages: dict[str, Stage] = {}
        self._waits: set[str] = set()

    @property
    def pending(self) -> set[str]:
        """No join's plan is made in parts."""
        return set()

    def plan_batch(self) -> JoineryPlan:
        """Plan a batch. CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        for join in self._definitions.joins:
            if join.name not in self._stages and _stream(join.name) not in self.errors:
                self._guard(join)
        self._check_shapes()
        routes, joins = [], []
        for name, stage in self._stages.items():
            for topic, shape in stage.sources.items():
                routes += [route_share(name, SourcePartition(topic, number)) for number in range(shape.partitions)]
            numbers = range(stage.internal_shape.partitions)
            joins += [join_share(name, SourcePartition(stage.internal, number)) for number in numbers]
        return JoineryPlan(self._definitions, dict(self._stages), (*routes, *joins))

    def first_share(self, stream: str) -> Share:
        """The share that stands for a join that cannot be planned."""
        return join_share(stream.partition("/")[0], SourcePartition(stream.partition("/")[0], 0))

    def make_task(self, plan: JoineryPlan) -> JoineryTask:
        return JoineryTask(plan)

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these streams again."""
        for stream in streams:
            self.errors.pop(stream, None)

    def check_settings(self) -> None:
        """Raise CdcError(TRANSACTION_TIMEOUT) if the brokers do not allow the settings."""
        self._topics.check_transaction_timeout(self._definitions.settings.transaction_timeout_seconds)

    def _guard(self, join: Join) -> None:
        """An error concerns the join alone."""
        try:
            stage = self.make_stage(join)
        except CdcError as error:
            if error.code not in {Code.REGISTRY_UNREACHABLE, Code.KAFKA_UNREACHABLE}:
                self.errors[_stream(join.name)] = error
            else:
                _logger.warning("join not planned", join=join.name, code=error.code.text, problem=error.problem)
        except Exception as error:
            _logger.exception("join not planned", join=join.name, trace=trace_of(error))
            self.errors[_stream(join.name)] = unexpected(join.name, error)
        else:
            if stage is not None:
                self._stages[join.name] = stage

    def make_stage(self, join: Join) -> Stage | None:
        """The stage of a join, with its topics; None while an input is not there. CdcError."""
        schemas: dict[str, InputSchema] = {}
        try:
            for name, given in join.input.items():
                found = self._catalogue.input_schema(given)
                if found is None:
                    self._log_missing(join, str(given))
                    return None
                schemas[name] = found
            plan = plan_join(join, schemas, self._kept(join))
            keys, values = key_schema(plan), value_schema(plan)
        except PlanError as error:
            raise does_not_fit(join, error) from error
        sources = self._topics.shapes(sorted({schema.topic for schema in schemas.values()}))
        registered = self._catalogue.register(join.target, keys, values, plan.personal)
        limit = max(map(self._topics.max_message_bytes, sources)) + _ADDED_BYTES
        internal = self._definitions.internal_topic(join)
        internal_shape = self._topics.make_internal_topic(internal, max_message_bytes=limit)
        target = self._topics.make_change_topic(registered.topic, internal_shape.partitions)
        if target.partitions != internal_shape.partitions:
            raise target_partitions(registered.topic, target.partitions, internal_shape.partitions)
        return Stage(plan, sources, internal, internal_shape, registered.topic, registered.key_id, registered.value_id)

    def _kept(self, join: Join) -> Collection[str] | None:
        """The fields that joined rows have so far; None if `*` stands for all columns."""
        target = None if self._takes_new_columns else self._catalogue.input_schema(join.target)
        return None if target is None else target.columns

    def _log_missing(self, join: Join, source: str) -> None:
        if join.name not in self._waits:
            self._waits.add(join.name)
            _logger.warning("join waits for an input", join=join.name, source=source)

    def _check_shapes(self) -> None:
        """A join whose topics are not those of before is stopped."""
        bound: dict[str, dict[str, TopicShape]] = {
            name: {**stage.sources, stage.internal: stage.internal_shape} for name, stage in self._stages.items()
        }
        now = self._topics.each_shape(sorted({topic for shapes in bound.values() for topic in shapes}))
        for name, shapes in bound.items():
            for topic, known in shapes.items():
                shape = now[topic]
                if isinstance(shape, CdcError):
                    if shape.code is not Code.KAFKA_UNREACHABLE:  # a broker that has just started may not know it yet
                        self.errors.setdefault(_stream(name), shape)
                elif shape != known:
                    self.errors.setdefault(_stream(name), JOIN_FAULTS.topic_changed(topic, known, shape))


def _stream(join: str) -> str:
    return f"{join}/"

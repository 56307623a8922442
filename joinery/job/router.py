"""Routes the messages of a source partition to the internal topic of a join."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

from cachetools import LRUCache

from cdc_common.messages import wire
from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.errors import MessageError
from joinery.faults import message_refused
from joinery.internal.codec import encode
from joinery.job.native_routes import IS_NATIVE, REFUSALS, native_routes
from joinery.joining.records import Group, Kind, Origin, Routed, Row
from joinery.routing.errors import RouteError
from joinery.routing.route import place, route
from joinery.routing.rows import RowCutter
from stream_runtime.exactly_once.stateless_task import Transformed
from stream_runtime.records import Message
from stream_runtime.source_batch import MessageBatches, MessageGroup, MessageGroups, SourceBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdc_native.avro.routes import Routes  # noqa: TC004 - the core may be missing
    from joinery.catalogue import Catalogue
    from joinery.records import Stage
    from stream_runtime.records import SourcePartition, SourceRecord

_MOST_SCHEMAS = 100
CAUSE = "snapshot"
"""The cause of joined rows that are sent because the join begins."""


class _NotNativeError(Exception):
    """The core does not take a schema of the messages."""


class _Way(NamedTuple):
    """The way of one input's messages of one schema: by the core, or by Python code if it does not take them."""

    cutter: RowCutter
    routes: Routes | None


class Router:
    """Routes the messages of one source partition. A topic that is several inputs of the join has messages for each."""

    def __init__(self, stage: Stage, source: SourcePartition, catalogue: Catalogue, end: int = 0) -> None:
        """end: the offset before which are the messages that the source has now."""
        self.end = end
        self.is_marked = False  # whether the marks are sent
        self._stage = stage
        self._source = source
        self._catalogue = catalogue
        self._definition = stage.plan.rule.definition
        self._ways: LRUCache[int, list[_Way]] = LRUCache(_MOST_SCHEMAS)

    def marks(self) -> list[Message]:
        """A message to each partition of the internal topic, for each input that the source is: the messages that it
        had are routed.
        """
        now = time_ns() // 1000
        count = encode_long(self._stage.sources[self._source.topic].partitions)
        row = Row(Group(b""), b"", count)
        routed = [
            Routed(
                Kind.MARK, row, Origin(number, self._source.partition, 0, 0, now, CAUSE), definition=self._definition
            )
            for number in self._stage.numbers_of(self._source.topic)
        ]
        return [
            Message(self._stage.internal, partition, *encode(message))
            for partition in range(self._partitions)
            for message in routed
        ]

    @cached_property
    def _partitions(self) -> int:
        return self._stage.internal_shape.partitions

    def route_chunk(self, records: Sequence[SourceRecord]) -> Transformed:
        """Route messages together where the native core takes their schemas, otherwise one by one.

        Where one of them cannot be routed, they are also routed one by one, up to that one.
        """
        if IS_NATIVE:
            with suppress(RouteError, MessageError, _NotNativeError, *REFUSALS):
                return self.route_together(records)
        return self.route_one_by_one(records)

    def route_one_by_one(self, records: Sequence[SourceRecord]) -> Transformed:
        """The messages of the records before the one that cannot be routed."""
        messages: list[Message] = []
        for number, record in enumerate(records):
            try:
                messages += list(self._route(record))
            except (RouteError, MessageError) as error:
                refused = message_refused(self._stage.plan.join.name, self._source, record.offset, error.reason)
                return Transformed(messages, refused, records=number)
        return Transformed(messages, records=len(records))

    def route_together(self, records: Sequence[SourceRecord]) -> Transformed:
        """Route all in the core, or raise. A group of messages for each schema and input: those to one partition are
        in the order of the batch.
        """
        batch = records if isinstance(records, SourceBatch) else SourceBatch.of(records)
        found = [
            (values, way.routes)
            for schema_id, values in batch.values.groups()
            for way in ([] if schema_id is None else self._ways_of(schema_id))
        ]
        placed: defaultdict[int, list[MessageGroup]] = defaultdict(list)
        offsets, source, internal = batch.offsets, self._source.partition, self._stage.internal
        for number, (values, routes) in enumerate(found):
            if routes is None:
                raise _NotNativeError
            places = (number, len(found)) if len(found) > 1 else None
            made = routes.apply(values, offsets, source, self._partitions, places, wire.HEADER_SIZE)
            for partition, keys, made_values in made:
                placed[partition].append(MessageGroup(internal, keys, made_values))
        messages = MessageBatches([MessageGroups(partition, groups) for partition, groups in placed.items()])
        return Transformed(messages, None, len(messages), len(records))

    def _route(self, record: SourceRecord) -> Iterator[Message]:
        if record.value is None:  # a tombstone follows its deletion
            return
        value = record.value[wire.HEADER_SIZE :]
        for way in self._ways_of(wire.schema_id(record.value)):
            change = way.cutter.change(value, self._source.partition, record.offset)._replace(may_miss=True)
            for partition, routed in place(route(change), self._partitions):
                message = routed._replace(definition=self._definition)
                yield Message(self._stage.internal, partition, *encode(message))

    def _ways_of(self, schema_id: int) -> list[_Way]:
        ways = self._ways.get(schema_id)
        if ways is None:
            schema, plan = self._catalogue.schema(schema_id), self._stage.plan
            numbers = self._stage.numbers_of(self._source.topic)
            cutters = [(number, RowCutter(plan, number, schema)) for number in numbers]
            ways = [_Way(cutter, native_routes(plan, number, schema, cutter)) for number, cutter in cutters]
            self._ways[schema_id] = ways
        return ways

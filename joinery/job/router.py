"""Routes the messages of a source partition to the internal topic of a join."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from cachetools import LRUCache

from cdc_common.messages import wire
from cdc_common.messages.errors import MessageError
from joinery.faults import message_refused
from joinery.internal.codec import encode
from joinery.routing.errors import RouteError
from joinery.routing.route import place, route
from joinery.routing.rows import RowCutter
from stream_runtime.exactly_once.stateless_task import Transformed
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from joinery.catalogue import Catalogue
    from joinery.records import Stage
    from stream_runtime.records import SourcePartition, SourceRecord

_MOST_SCHEMAS = 100


class Router:
    """Routes the messages of one source partition. A topic that is several inputs of the join has messages for each."""

    def __init__(self, stage: Stage, source: SourcePartition, catalogue: Catalogue) -> None:
        self._stage = stage
        self._source = source
        self._catalogue = catalogue
        self._cutters: LRUCache[int, list[RowCutter]] = LRUCache(_MOST_SCHEMAS)

    @cached_property
    def _partitions(self) -> int:
        return self._stage.internal_shape.partitions

    def route_chunk(self, records: Sequence[SourceRecord]) -> Transformed:
        """The messages of the records before the one that cannot be routed."""
        messages: list[Message] = []
        for number, record in enumerate(records):
            try:
                messages += list(self._route(record))
            except (RouteError, MessageError) as error:
                refused = message_refused(self._stage.plan.join.name, self._source, record.offset, error.reason)
                return Transformed(messages, refused, records=number)
        return Transformed(messages, records=len(records))

    def _route(self, record: SourceRecord) -> Iterator[Message]:
        if record.value is None:  # a tombstone follows its deletion
            return
        value = record.value[wire.HEADER_SIZE :]
        for cutter in self._cutters_of(wire.schema_id(record.value)):
            change = cutter.change(value, self._source.partition, record.offset)._replace(may_miss=True)
            for partition, routed in place(route(change), self._partitions):
                yield Message(self._stage.internal, partition, *encode(routed))

    def _cutters_of(self, schema_id: int) -> list[RowCutter]:
        cutters = self._cutters.get(schema_id)
        if cutters is None:
            schema = self._catalogue.schema(schema_id)
            numbers = self._stage.numbers_of(self._source.topic)
            cutters = self._cutters[schema_id] = [RowCutter(self._stage.plan, number, schema) for number in numbers]
        return cutters

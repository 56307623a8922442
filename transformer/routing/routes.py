"""Route and transform the messages of one stream by the schemas that their headers name."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cachetools import LRUCache

from cdc_common.errors.codes import CdcError
from cdc_common.messages import wire
from cdc_common.messages.errors import MessageError
from stream_runtime.exactly_once.stateless_task import Transformed
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.records import Message, SourcePartition
from stream_runtime.source_batch import MessageGroup, MessageGroups, SourceBatch
from transformer.errors import StepError, TransformError
from transformer.faults import message_refused, step_does_not_fit, target_partitions
from transformer.steps.derive import SourceTopic, Transform, derive
from transformer.steps.rewrite import IS_NATIVE, REFUSALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_native.avro.rewrite import Rewrite  # noqa: TC004 - the core may be missing
    from stream_runtime.records import SourceRecord
    from transformer.definition import Transformer
    from transformer.records import Stream
    from transformer.routing.catalogue import Catalogue
    from transformer.routing.registered import Part

if IS_NATIVE:
    from cdc_native.avro.messages import Messages

MOST_ROUTES = 1000  # pairs of schemas of a stream, kept by a process
MOST_KEYS = 100  # schemas of keys of a partition whose last topic is kept


class MakeTopic(Protocol):
    def __call__(self, topic: str, partitions: int, /, *, is_keyed: bool) -> int:
        """Create the target topic unless it exists: its partition count. CdcError."""
        ...


class CheckTarget(Protocol):
    def __call__(self, partition: SourcePartition, /) -> None:
        """Check a partition before the first message to it. CdcError if the message must not be sent."""
        ...


class _Part(NamedTuple):
    """How keys or values are made: by the native core, or by Python code if it does not take them."""

    header: bytes
    transform: Transform
    rewrite: Rewrite | None

    def make(self, message: bytes | None) -> bytes | None:
        """TransformError."""
        return None if message is None else self.header + self.transform(message[wire.HEADER_SIZE :])

    def make_all(self, messages: Messages) -> Messages:
        """TransformError, and what the core refuses a message with."""
        if self.rewrite is None:
            return Messages.of([self.make(message) for message in messages.to_list()], messages)
        return self.rewrite.apply(messages, wire.HEADER_SIZE, self.header)

    @property
    def is_native(self) -> bool:
        return self.rewrite is not None or not self.header


class _Route(NamedTuple):
    """The route of messages of one pair of schemas. Headers are those of Confluent's wire format."""

    topic: str
    key: _Part
    value: _Part


class Routes:
    """Derives and registers each pair of schemas once. Shared by all partitions of a stream in a process."""

    def __init__(self, transformer: Transformer, stream: Stream, catalogue: Catalogue, make_topic: MakeTopic) -> None:
        self._transformer = transformer
        self._stream = stream
        self._catalogue = catalogue
        self._make_topic = make_topic
        self._routes: LRUCache[tuple[int | None, int], _Route] = LRUCache(MOST_ROUTES)
        # By partition and key schema.
        self._of_tombstones: defaultdict[int, LRUCache[int | None, _Route]] = defaultdict(partial(LRUCache, MOST_KEYS))

    def transform(self, record: SourceRecord, partition: int, check_target: CheckTarget) -> Message:
        """The target's message. CdcError: TRANSFORM_FAILED, TRANSFORM_STEP, or one of the registry or of Kafka."""
        try:
            route = self._route(record, partition)
            check_target(SourcePartition(route.topic, partition))
            return _message(route, partition, route.key.make(record.key), route.value.make(record.value))
        except TransformError as error:
            raise self._refused(record, partition, error.reason) from error
        except MessageError as error:
            raise self._refused(record, partition, f"it has {error.reason}") from error

    def transform_chunk(
        self, records: Sequence[SourceRecord], partition: int, check_target: CheckTarget
    ) -> Transformed:
        """Transform messages together where the native core is in use, otherwise one by one.

        Where one of them cannot be transformed, they are also transformed one by one, which finds it and the reason.
        """
        if IS_NATIVE:
            with suppress(CdcError, TransformError, MessageError, *REFUSALS):
                return self._transform_together(records, partition, check_target)
        messages: list[Message] = []
        for record in records:
            try:
                messages.append(self.transform(record, partition, check_target))
            except CdcError as error:
                return Transformed(messages, error)
        return Transformed(messages)

    def _transform_together(
        self, records: Sequence[SourceRecord], partition: int, check_target: CheckTarget
    ) -> Transformed:
        """Transform the messages of each route in one call."""
        batch = records if isinstance(records, SourceBatch) else SourceBatch.of(records)
        pairs, last = batch.pairs()
        groups: list[MessageGroup] = []
        native = 0
        for key_id, value_id, keys, values in pairs:
            route = self._tombstone_route(key_id, partition) if value_id is None else self._route_of(key_id, value_id)
            check_target(SourcePartition(route.topic, partition))
            groups.append(MessageGroup(route.topic, route.key.make_all(keys), route.value.make_all(values)))
            native += len(values) if route.key.is_native and route.value.is_native else 0
        for key_id, value_id in last.items():
            self._of_tombstones[partition][key_id] = self._route_of(key_id, value_id)
        return Transformed(MessageGroups(partition, groups), None, native)

    def forget(self, partition: int) -> None:
        """Another process may have read on in the partition since: what came last in it is not known here."""
        self._of_tombstones.pop(partition, None)

    def make_targets(self) -> None:
        """Make target topics again that were deleted. CdcError, KafkaException."""
        for topic, is_keyed in {(route.topic, bool(route.key.header)) for route in self._routes.values()}:
            self._make_target(topic, is_keyed=is_keyed)

    def _make_target(self, topic: str, *, is_keyed: bool) -> None:
        wanted = self._stream.shape.partitions
        if (found := self._make_topic(topic, wanted, is_keyed=is_keyed)) != wanted:
            raise target_partitions(topic, found, wanted, self._stream.topic)

    def _refused(self, record: SourceRecord, partition: int, reason: str) -> Exception:
        return message_refused(self._transformer, SourcePartition(self._stream.topic, partition), record.offset, reason)

    def _route(self, record: SourceRecord, partition: int) -> _Route:
        """Return the route of a message. MessageError for one that is not in Confluent's wire format."""
        key_id = None if record.key is None else wire.schema_id(record.key)
        if record.value is None:
            return self._tombstone_route(key_id, partition)
        value_id = wire.schema_id(record.value)
        route = self._of_tombstones[partition][key_id] = self._route_of(key_id, value_id)
        return route

    def _route_of(self, key_id: int | None, value_id: int) -> _Route:
        route = self._routes.get((key_id, value_id))
        if route is None:
            route = self._routes[key_id, value_id] = self._make_route(key_id, value_id)
        return route

    def _tombstone_route(self, key_id: int | None, partition: int) -> _Route:
        """A tombstone follows the deletion of its key, in its partition: messages of other partitions may have other
        schemas, and so another topic, already. Without one before it in this process, the newest schema says which
        topic it is.
        """
        known = self._of_tombstones[partition]
        route = known.get(key_id)
        if route is None:
            newest = self._catalogue.newest(self._stream.topic)
            if newest is None:
                raise TransformError("it is a tombstone, and its topic has no schema of values")
            route = self._route_of(key_id, newest.value_id)
            known[key_id] = route
        return route

    def _version(self, part: Part, schema_id: int) -> int:
        """A schema of another topic could hold under another name what is masked."""
        found = self._catalogue.version(self._stream.topic, part, schema_id)
        if found is None:
            raise TransformError(f"the schema {schema_id} of its {part} is none of the topic's")
        return found

    def _is_older(self, value_id: int) -> bool:
        """Than the schema with which the stream was planned: a newer one must have the columns, too."""
        version = self._version("value", value_id)
        newest = self._catalogue.version(self._stream.topic, "value", self._stream.newest_id)
        return newest is not None and version < newest

    def _make_route(self, key_id: int | None, value_id: int) -> _Route:
        key = None
        if key_id is not None:
            self._version("key", key_id)
            key = self._catalogue.schema(key_id)
        must_exist = not self._is_older(value_id)
        source = SourceTopic(self._stream.topic, key, self._catalogue.schema(value_id), self._stream.pii, must_exist)
        try:
            derived = derive(self._transformer, source)
        except StepError as error:
            raise step_does_not_fit(self._transformer, self._stream.topic, error) from error
        registered = self._catalogue.register(self._transformer, derived)
        reach(StatelessPoint.SCHEMAS_REGISTERED)
        self._make_target(registered.topic, is_keyed=key_id is not None)
        key_header = b"" if registered.key_id is None else wire.header(registered.key_id)
        return _Route(
            registered.topic,
            _Part(key_header, derived.transform_key, derived.rewrite_key),
            _Part(wire.header(registered.value_id), derived.transform_value, derived.rewrite_value),
        )


def _message(route: _Route, partition: int, key: bytes | None, value: bytes | None) -> Message:
    return Message(route.topic, partition, key, value)  # type: ignore[arg-type] # Kafka's keys may be null

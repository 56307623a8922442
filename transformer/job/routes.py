"""Route and transform the messages of one stream by the schemas that their headers name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdc_messages import wire
from cdc_messages.errors import MessageError
from materializer.fault_points import TransformPoint, reach
from materializer.records import Message, RawPartition
from transformer.derive import Source, Transform, derive
from transformer.errors import StepError, TransformError
from transformer.faults import message_refused, step_does_not_fit, target_partitions

if TYPE_CHECKING:
    from transformer.catalogue import Catalogue
    from transformer.definition import Transformer
    from transformer.records import SourceRecord, Stream
    from transformer.registered import Part


class MakeTopic(Protocol):
    def __call__(self, topic: str, partitions: int, /, *, is_keyed: bool) -> int:
        """Create the target topic unless it exists: its partition count. CdcError."""
        ...


class CheckTarget(Protocol):
    def __call__(self, partition: RawPartition, /) -> None:
        """Check a partition before the first message to it. CdcError if the message must not be sent."""
        ...


class _Route(NamedTuple):
    """The route of messages of one pair of schemas. Headers are those of Confluent's wire format."""

    topic: str
    key_header: bytes
    value_header: bytes
    transform_key: Transform
    transform_value: Transform


class Routes:
    """Derives and registers each pair of schemas once. Shared by all partitions of a stream in a process."""

    def __init__(self, transformer: Transformer, stream: Stream, catalogue: Catalogue, make_topic: MakeTopic) -> None:
        self._transformer = transformer
        self._stream = stream
        self._catalogue = catalogue
        self._make_topic = make_topic
        self._routes: dict[tuple[int | None, int], _Route] = {}
        self._of_tombstones: dict[tuple[int, int | None], _Route] = {}  # by partition and key schema

    def transform(self, record: SourceRecord, partition: int, check_target: CheckTarget) -> Message:
        """The target's message. CdcError: TRANSFORM_FAILED, TRANSFORM_STEP, or one of the registry or of Kafka."""
        try:
            route = self._route(record, partition)
            check_target(RawPartition(route.topic, partition))
            key = None if record.key is None else route.transform_key(record.key[wire.HEADER_SIZE :])
            value = None if record.value is None else route.transform_value(record.value[wire.HEADER_SIZE :])
        except TransformError as error:
            raise self._refused(record, partition, error.reason) from error
        except MessageError as error:
            raise self._refused(record, partition, f"it has {error.reason}") from error
        return Message(
            route.topic,
            partition,
            None if key is None else route.key_header + key,  # type: ignore[arg-type] # Kafka's keys may be null
            None if value is None else route.value_header + value,
        )

    def forget(self, partition: int) -> None:
        """Another process may have read on in the partition since: what came last in it is not known here."""
        for known in [each for each in self._of_tombstones if each[0] == partition]:
            del self._of_tombstones[known]

    def make_targets(self) -> None:
        """Make target topics again that were deleted. CdcError, KafkaException."""
        for topic, is_keyed in {(route.topic, bool(route.key_header)) for route in self._routes.values()}:
            self._make_target(topic, is_keyed=is_keyed)

    def _make_target(self, topic: str, *, is_keyed: bool) -> None:
        wanted = self._stream.shape.partitions
        if (found := self._make_topic(topic, wanted, is_keyed=is_keyed)) != wanted:
            raise target_partitions(topic, found, wanted, self._stream.topic)

    def _refused(self, record: SourceRecord, partition: int, reason: str) -> Exception:
        return message_refused(self._transformer, RawPartition(self._stream.topic, partition), record.offset, reason)

    def _route(self, record: SourceRecord, partition: int) -> _Route:
        """Return the route of a message. MessageError for one that is not in Confluent's wire format."""
        key_id = None if record.key is None else wire.schema_id(record.key)
        if record.value is None:
            return self._tombstone_route(key_id, partition)
        value_id = wire.schema_id(record.value)
        route = self._routes.get((key_id, value_id))
        if route is None:
            route = self._routes[key_id, value_id] = self._make_route(key_id, value_id)
        self._of_tombstones[partition, key_id] = route
        return route

    def _tombstone_route(self, key_id: int | None, partition: int) -> _Route:
        """A tombstone follows the deletion of its key, in its partition: messages of other partitions may have other
        schemas, and so another topic, already. Without one before it in this process, the newest schema says which
        topic it is.
        """
        route = self._of_tombstones.get((partition, key_id))
        if route is None:
            newest = self._catalogue.newest(self._stream.topic)
            if newest is None:
                raise TransformError("it is a tombstone, and its topic has no schema of values")
            route = self._routes.get((key_id, newest.value_id)) or self._make_route(key_id, newest.value_id)
            self._of_tombstones[partition, key_id] = self._routes[key_id, newest.value_id] = route
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
        source = Source(self._stream.topic, key, self._catalogue.schema(value_id), self._stream.pii, must_exist)
        try:
            derived = derive(self._transformer, source)
        except StepError as error:
            raise step_does_not_fit(self._transformer, self._stream.topic, error) from error
        registered = self._catalogue.register(self._transformer, derived)
        reach(TransformPoint.SCHEMAS_REGISTERED)
        self._make_target(registered.topic, is_keyed=key_id is not None)
        key_header = b"" if registered.key_id is None else wire.header(registered.key_id)
        return _Route(
            registered.topic,
            key_header,
            wire.header(registered.value_id),
            derived.transform_key,
            derived.transform_value,
        )

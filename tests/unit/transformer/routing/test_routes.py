"""Where messages go, by the schemas that their headers name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import wire
from materializer.records import RawPartition
from stream_runtime.records import SourceRecord, TopicShape
from tests.support.transformer.definitions import transformer
from tests.support.transformer.memory_catalogue import KEY_ID, VALUE_ID, MemoryCatalogue
from tests.support.transformer.orders import ENVELOPE, KEY, ORDER, TOPIC, encode, envelope
from transformer.records import Stream
from transformer.routing.routes import Routes
from transformer.steps.rewrite import IS_NATIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_runtime.exactly_once.stateless_task import Transformed
    from transformer.definition import Transformer
    from transformer.routing.registered import Part, Registered
    from transformer.steps.derive import Derived

STEPS = '[[transformer.step]]\nkind = "mask"\ncolumns = ["email"]\nhow = "drop"'
VALUE = wire.header(VALUE_ID) + encode(ENVELOPE, envelope(None, ORDER, "c"))
ID = wire.header(KEY_ID) + encode(KEY, {"id": 7})

native = pytest.mark.skipif(not IS_NATIVE, reason="the native core is not compiled, or turned off")


class Scene:
    def __init__(self, partitions: int = 3) -> None:
        self.catalogue = MemoryCatalogue()
        self.checked: list[RawPartition] = []
        self.partitions = partitions
        self.is_keyed = True
        stream = Stream(0, TOPIC, TopicShape(3, "id"), newest_id=VALUE_ID)
        self.routes = Routes(transformer(STEPS), stream, self.catalogue, self._make)

    def _make(self, _topic: str, _partitions: int, *, is_keyed: bool) -> int:
        self.is_keyed = is_keyed
        return self.partitions

    def transform(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        made = self.routes.transform(SourceRecord(key, value, 12), 2, self.checked.append)
        assert (made.topic, made.partition) == ("public.shop.orders", 2)
        return made.key, made.value


def test_schemas_are_registered_once() -> None:
    scene = Scene()
    key, value = scene.transform(ID, VALUE)
    assert key == wire.header(100) + ID[wire.HEADER_SIZE :]
    assert value is not None
    assert wire.schema_id(value) == 101
    scene.transform(ID, VALUE)
    assert len(scene.catalogue.registered) == 1
    assert scene.checked == [RawPartition("public.shop.orders", 2)] * 2


def test_a_tombstone_goes_where_the_message_before_it_went() -> None:
    scene = Scene()
    scene.transform(ID, VALUE)
    assert scene.transform(ID, None) == (wire.header(100) + ID[wire.HEADER_SIZE :], None)
    assert scene.catalogue.newest_asked == 0


def test_a_tombstone_alone_goes_where_the_newest_schema_says() -> None:
    scene = Scene()
    scene.transform(ID, None)
    scene.transform(ID, None)
    assert scene.catalogue.newest_asked == 1


def test_a_tombstone_follows_the_message_before_it_in_its_partition() -> None:
    """Another partition has gone on to a schema, and so to a topic, that does not fit the one of the deletion.
    Without its tombstone the deletion, which has the row, would stay in the first topic.
    """

    class Versions(MemoryCatalogue):
        def register(self, transformer: Transformer, derived: Derived) -> Registered:
            return super().register(transformer, derived)._replace(topic=f"orders-v{len(self.registered)}")

    catalogue = Versions()
    catalogue.schemas[3] = {**ENVELOPE, "doc": "newer"}
    stream = Stream(0, TOPIC, TopicShape(3, "id"), newest_id=VALUE_ID)
    routes = Routes(transformer(STEPS), stream, catalogue, lambda _topic, partitions, *, is_keyed: partitions)  # noqa: ARG005

    def topic_of(partition: int, value: bytes | None) -> str:
        return routes.transform(SourceRecord(ID, value, 12), partition, lambda _target: None).topic

    assert topic_of(0, VALUE) == "orders-v1"
    assert topic_of(1, wire.header(3) + VALUE[wire.HEADER_SIZE :]) == "orders-v2"
    assert topic_of(0, None) == "orders-v1"
    assert topic_of(1, None) == "orders-v2"
    catalogue.value_id = 3
    routes.forget(0)
    assert topic_of(0, None) == "orders-v2", "opened again: the newest schema says it"


def test_a_key_may_be_null() -> None:
    scene = Scene()
    assert scene.transform(None, VALUE)[0] is None
    assert not scene.is_keyed


@pytest.mark.parametrize(("key", "value"), [(b"7", VALUE), (ID, b"\x01" + VALUE[1:]), (ID, b"")])
def test_what_is_not_in_the_wire_format_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(CdcError) as caught:
        Scene().transform(key, value)
    assert caught.value.code is Code.TRANSFORM_FAILED
    assert f"offset 12 of {TOPIC}-2" in caught.value.problem


def test_an_older_schema_need_not_have_the_column_and_a_newer_one_must() -> None:
    without = json.loads(json.dumps(ENVELOPE).replace('"email"', '"mail"'))
    value = encode(without, envelope(None, {**ORDER, "mail": None}, "c"))
    scene = Scene()
    scene.catalogue.schemas |= {0: without, 3: without}
    assert scene.transform(ID, wire.header(0) + value)[1] is not None
    with pytest.raises(CdcError) as caught:
        scene.transform(ID, wire.header(3) + value)
    assert caught.value.code is Code.TRANSFORM_STEP


def test_a_newer_schema_may_have_a_lower_id() -> None:
    """Another topic had it before. Taken for an older one, it would let the renamed column through."""
    without = json.loads(json.dumps(ENVELOPE).replace('"email"', '"mail"'))
    value = encode(without, envelope(None, {**ORDER, "mail": None}, "c"))
    scene = Scene()
    scene.catalogue.schemas |= {0: without, 9: without}
    scene.catalogue.versions = {9: 1, VALUE_ID: 2, 0: 3}
    assert scene.transform(ID, wire.header(9) + value)[1] is not None
    with pytest.raises(CdcError) as caught:
        scene.transform(ID, wire.header(0) + value)
    assert caught.value.code is Code.TRANSFORM_STEP


@pytest.mark.parametrize("schema_id", [7, 999])
def test_a_schema_of_another_topic_or_of_none_is_refused(schema_id: int) -> None:
    """A new name of a column would let its values through."""
    scene = Scene()
    scene.catalogue.schemas[7] = ENVELOPE
    scene.catalogue.of_others = {7}
    for key, value, part in (
        (ID, wire.header(schema_id) + VALUE[wire.HEADER_SIZE :], "value"),
        (wire.header(schema_id) + ID[wire.HEADER_SIZE :], VALUE, "key"),
    ):
        with pytest.raises(CdcError) as caught:
            scene.transform(key, value)
        assert caught.value.code is Code.TRANSFORM_FAILED
        assert f"offset 12 of {TOPIC}-2: the schema {schema_id} of its {part} is none of the topic's" in str(
            caught.value.problem
        )
    assert not scene.catalogue.registered


def test_a_target_with_other_partitions_is_refused() -> None:
    with pytest.raises(CdcError) as caught:
        Scene(partitions=4).transform(ID, VALUE)
    assert caught.value.code is Code.TOPIC_SETTINGS


def both(scene_of: Callable[[], Scene], records: Sequence[SourceRecord]) -> tuple[Transformed, Transformed]:
    """Transform a chunk by the native core and, in another process, by Python code."""
    together, alone = scene_of(), scene_of()
    made = together.routes.transform_chunk(records, 2, together.checked.append)
    with patch("transformer.routing.routes.IS_NATIVE", new=False):
        expected = alone.routes.transform_chunk(records, 2, alone.checked.append)
    assert list(made.messages) == list(expected.messages)
    assert [registered.value_schema for registered in together.catalogue.registered] == [
        registered.value_schema for registered in alone.catalogue.registered
    ]
    assert (made.error is None) == (expected.error is None)
    return made, expected


@native
def test_a_chunk_is_transformed_by_the_core() -> None:
    value = wire.header(VALUE_ID) + encode(ENVELOPE, envelope(ORDER, None, "d"))
    records = [SourceRecord(ID, payload, offset) for offset, payload in enumerate([VALUE, value, None, VALUE])]
    made, alone = both(Scene, records)
    assert (len(made.messages), made.native, alone.native) == (4, 4, 0)


@native
def test_the_messages_before_a_bad_one_are_made() -> None:
    records = [SourceRecord(ID, VALUE, 0), SourceRecord(ID, VALUE[:-1], 1), SourceRecord(ID, VALUE, 2)]
    made, alone = both(Scene, records)
    assert len(made.messages) == 1
    assert made.error is not None
    assert alone.error is not None
    assert made.error.problem == alone.error.problem
    assert "offset 1" in made.error.problem


@native
@pytest.mark.parametrize(
    "bad", [SourceRecord(ID, b"no header", 1), SourceRecord(b"", VALUE, 1), SourceRecord(ID, b"", 1)]
)
def test_a_message_without_a_header_in_a_chunk(bad: SourceRecord) -> None:
    made, _ = both(Scene, [SourceRecord(ID, VALUE, 0), bad])
    assert (len(made.messages), made.error is None) == (1, False)


def _is_key(schema_id: int) -> bool:
    return schema_id == KEY_ID or schema_id >= 5000


class ManySchemas(MemoryCatalogue):
    """Every number is a schema of values, and each has its own topic, but the key's number and those from 5,000 on."""

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return super().schema(KEY_ID if _is_key(schema_id) else VALUE_ID)

    def version(self, _topic: str, part: Part, schema_id: int) -> int | None:
        return schema_id if (part == "key") == _is_key(schema_id) else None

    def register(self, transformer: Transformer, derived: Derived) -> Registered:
        return super().register(transformer, derived)._replace(topic=f"orders-v{len(self.registered)}")


def many_schemas() -> Scene:
    scene = Scene()
    scene.catalogue = ManySchemas()
    stream = Stream(0, TOPIC, TopicShape(3, "id"), newest_id=VALUE_ID)
    scene.routes = Routes(transformer(STEPS), stream, scene.catalogue, scene._make)
    return scene


@native
def test_a_chunk_of_several_schemas_keeps_the_order() -> None:
    """Each tombstone goes to the topic of the message before it."""
    numbers = [1000, 1002, None, 1000, 1000, None, 1002, None, 1002]
    values = [None if number is None else wire.header(number) + VALUE[wire.HEADER_SIZE :] for number in numbers]
    made, _ = both(many_schemas, [SourceRecord(ID, payload, offset) for offset, payload in enumerate(values)])
    assert [message.topic[-1] for message in made.messages] == ["1", "2", "2", "1", "1", "1", "2", "2", "2"]
    assert made.native == len(numbers)


def test_the_routes_that_are_kept_are_bounded() -> None:
    with patch.multiple("transformer.routing.routes", MOST_ROUTES=5, MOST_KEYS=3):
        scene = many_schemas()
        for number in range(1000, 1020):
            key = wire.header(4000 + number) + ID[wire.HEADER_SIZE :]
            record = SourceRecord(key, wire.header(number) + VALUE[wire.HEADER_SIZE :], 0)
            scene.routes.transform(record, 2, scene.checked.append)
    assert len(scene.routes._routes) == 5
    assert len(scene.routes._of_tombstones[2]) == 3


@native
def test_a_schema_that_the_core_does_not_take_is_transformed_by_python() -> None:
    envelope_schema = json.loads(json.dumps(ENVELOPE))
    source = envelope_schema["fields"][2]["type"]
    source["fields"].append({"name": "more", "type": ["null", "Source"], "default": None})

    def scene_of() -> Scene:
        scene = Scene()
        scene.catalogue.schemas[VALUE_ID] = envelope_schema
        return scene

    row: dict[str, Any] = {**envelope(None, ORDER, "c")}
    row["source"] = {**row["source"], "more": {"file": "b", "more": None}}
    value = wire.header(VALUE_ID) + encode(envelope_schema, row)
    made, _ = both(scene_of, [SourceRecord(ID, value, 0)])
    assert (len(made.messages), made.native) == (1, 0)

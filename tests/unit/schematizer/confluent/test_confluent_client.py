"""confluent-kafka's own client, serializer and deserializer, unchanged, against the registry as it is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import ConfigCompatibilityLevel, ServerConfig
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.schematizer.orders import NARROWER, ORDER, WIDER
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def avro(tree: object) -> Schema:
    return Schema(json.dumps(tree), "AVRO")


@pytest.fixture
def client(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as running:
        yield running


def test_serializer_and_deserializer(registry: Registry, client: SchemaRegistryClient, subject: str) -> None:
    context = SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)
    value = {"id": 7, "price": b"\x01\x02", "note": "ü"}
    message = AvroSerializer(client, json.dumps(ORDER), conf={"auto.register.schemas": True})(value, context)
    assert message is not None
    schema_id = client.get_latest_version(subject).schema_id
    assert message[:5] == b"\x00" + int(schema_id or 0).to_bytes(4)
    with SchemaRegistryClient({"url": registry.url}) as reader:
        read = AvroDeserializer(reader)(message, context)
        wider = AvroDeserializer(reader, json.dumps(WIDER))(message, context)
    assert read["id"] == 7
    assert read["note"] == "ü"
    assert wider == {**read, "amount": 1}


@pytest.mark.parametrize("conf", [{"normalize.schemas": True}, {"use.latest.version": True}, {}])
def test_serializer_that_may_not_register(client: SchemaRegistryClient, subject: str, conf: dict[str, bool]) -> None:
    client.register_schema(subject, avro(ORDER))
    context = SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)
    serializer = AvroSerializer(client, json.dumps(ORDER), conf={"auto.register.schemas": False, **conf})
    assert serializer({"id": 1, "price": b"", "note": None}, context)


def test_the_whole_client(client: SchemaRegistryClient, subject: str) -> None:
    schema_id = client.register_schema(subject, avro(ORDER))
    full = client.register_schema_full_response(subject, avro(WIDER), normalize_schemas=True)
    assert (full.version, full.subject) == (2, subject)
    assert client.lookup_schema(subject, avro(ORDER)).schema_id == schema_id
    assert json.loads(client.get_schema(schema_id).schema_str or "") == ORDER
    guid = client.get_version(subject, 1).guid
    assert guid is not None
    assert json.loads(client.get_schema_by_guid(guid).schema_str or "") == ORDER
    assert client.get_latest_version(subject).version == 2
    assert client.get_versions(subject) == [1, 2]
    assert client.get_subjects(subject_prefix=subject) == [subject]
    assert subject in client.get_subjects_by_schema_id(schema_id)
    assert (subject, 1) in [
        (get_schema_version.subject, get_schema_version.version)
        for get_schema_version in client.get_schema_versions(schema_id)
    ]
    assert client.get_referenced_by(subject, 1) == []
    assert client.get_schema_types() == ["AVRO"]
    assert client.get_contexts() == ["."]


def test_levels_modes_and_compatibility(client: SchemaRegistryClient, subject: str) -> None:
    client.register_schema(subject, avro(ORDER))
    assert client.test_compatibility(subject, avro(WIDER))
    assert not client.test_compatibility(subject, avro(NARROWER))
    assert not client.test_compatibility_all_versions(subject, avro(NARROWER), verbose=True)
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema(subject, avro(NARROWER))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    answer: object = client.set_compatibility(subject, "none")  # not the str that its annotation says
    assert answer == {"compatibility": "NONE"}
    assert client.get_compatibility(subject) == "NONE"
    assert client.get_compatibility() == "BACKWARD"
    assert client.register_schema(subject, avro(NARROWER))
    client.set_config(subject, ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config(subject).compatibility_level is ConfigCompatibilityLevel.FULL
    assert client.delete_config(subject).compatibility_level is ConfigCompatibilityLevel.FULL
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    client.delete_mode(subject)
    assert client.get_global_mode() == "READWRITE"


def test_deletion(client: SchemaRegistryClient, subject: str) -> None:
    client.register_schema(subject, avro(ORDER))
    client.register_schema(subject, avro(WIDER))
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
    assert client.get_subjects(subject_prefix=subject, deleted_only=True) == [subject]
    assert client.delete_subject(subject, permanent=True) in ([2], [1, 2])


def test_ids_outlive_the_process(tmp_path: Path, subject: str) -> None:
    registry = Registry(tmp_path / "registry.db").start()
    with SchemaRegistryClient({"url": registry.url}) as client:
        ids = [client.register_schema(subject, avro(ORDER)), client.register_schema("other", avro("string"))]
        client.set_compatibility(subject, "FULL")
    registry.stop()
    registry.start()
    try:
        with SchemaRegistryClient({"url": registry.url}) as client:
            assert [
                client.register_schema(subject, avro(ORDER)),
                client.register_schema("other", avro("string")),
            ] == ids
            assert json.loads(client.get_schema(ids[0]).schema_str or "") == ORDER
            assert client.get_compatibility(subject) == "FULL"
            assert client.register_schema("new", avro("bytes")) not in ids
    finally:
        registry.stop()

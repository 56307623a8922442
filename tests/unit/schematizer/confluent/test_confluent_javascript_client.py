"""Confluent's JavaScript client, its serializer and deserializer, unchanged, against the registry as it is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.schematizer.confluent_javascript import JavaScriptClient, RestError
from tests.support.schematizer.orders import NARROWER, ORDER, WIDER
from tests.support.schematizer.secured_process import SecuredRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.schematizer.registry_process import Registry

pytestmark = pytest.mark.exhaustive  # it installs packages of 170 MB


@pytest.fixture
def client(registry: Registry) -> Iterator[JavaScriptClient]:
    with JavaScriptClient(registry.url) as running:
        yield running


def avro(tree: object) -> dict[str, str]:
    """Confluent's SchemaInfo."""
    return {"schema": json.dumps(tree), "schemaType": "AVRO"}


def tree(schema: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return json.loads(schema["schema"])


def test_registering_is_idempotent(registry: Registry, client: JavaScriptClient, subject: str) -> None:
    schema_id = client.call("register", subject, avro(ORDER), False)
    with JavaScriptClient(registry.url) as fresh:
        assert fresh.call("register", subject, avro(ORDER), True) == schema_id
        assert fresh.call("register", f"{subject}-2", avro(ORDER), False) == schema_id
        full = fresh.call("registerFullResponse", subject, avro(WIDER), False)
    assert full["id"] != schema_id
    assert full["version"] == 2
    assert client.call("getAllVersions", subject) == [1, 2]


def test_schemas_by_id_and_subject(registry: Registry, client: JavaScriptClient, subject: str) -> None:
    schema_id = client.call("register", subject, avro(ORDER), False)
    with JavaScriptClient(registry.url) as reader:
        assert tree(reader.call("getBySubjectAndId", subject, schema_id)) == ORDER
        latest = reader.call("getLatestSchemaMetadata", subject)
        assert (latest["id"], latest["version"], tree(latest)) == (schema_id, 1, ORDER)
        assert tree(reader.call("getByGuid", latest["guid"])) == ORDER
        assert reader.call("getSchemaMetadata", subject, 1, False)["id"] == schema_id
        assert reader.call("getId", subject, avro(ORDER), False) == schema_id
        assert reader.call("getVersion", subject, avro(ORDER), True, False) == 1
        assert subject in reader.call("getAllSubjects")


def test_serializer_and_deserializer(registry: Registry, client: JavaScriptClient, subject: str) -> None:
    topic, value = subject.removesuffix("-value"), {"id": 7, "note": "ü", "amount": 3}
    plain = {**ORDER, "fields": [ORDER["fields"][0], ORDER["fields"][2], {"name": "amount", "type": "int"}]}
    client.call("register", subject, avro(plain), False)
    message = client.call("serialize", topic, value, {"useLatestVersion": True})
    assert message.startswith("00" + client.call("getLatestSchemaMetadata", subject)["id"].to_bytes(4).hex())
    with JavaScriptClient(registry.url) as reader:
        assert reader.call("deserialize", topic, message, {}) == value


def test_levels_and_compatibility(client: JavaScriptClient, subject: str) -> None:
    client.call("register", subject, avro(ORDER), False)
    assert client.call("testSubjectCompatibility", subject, avro(WIDER))
    assert not client.call("testSubjectCompatibility", subject, avro(NARROWER))
    assert not client.call("testCompatibility", subject, 1, avro(NARROWER))
    with pytest.raises(RestError) as refused:
        client.call("register", subject, avro(NARROWER), False)
    assert (refused.value.status, refused.value.code) == (409, 409)
    assert client.call("updateCompatibility", subject, "NONE") == "NONE"
    assert client.call("getCompatibility", subject) == "NONE"
    assert client.call("getDefaultCompatibility") == "BACKWARD"
    assert client.call("register", subject, avro(NARROWER), False)
    assert client.call("updateConfig", subject, {"compatibility": "FULL"})["compatibility"] == "FULL"
    assert client.call("getConfig", subject)["compatibilityLevel"] == "FULL"
    assert client.call("getDefaultConfig")["compatibilityLevel"] == "BACKWARD"


def test_deletion_and_what_is_not_there(registry: Registry, client: JavaScriptClient, subject: str) -> None:
    for schema in (ORDER, WIDER):
        client.call("register", subject, avro(schema), False)
    assert client.call("deleteSubjectVersion", subject, 1, False) == 1
    assert client.call("deleteSubject", subject, False) == [2]
    assert client.call("deleteSubject", subject, True) in ([2], [1, 2])
    with JavaScriptClient(registry.url) as fresh:
        for method, arguments, code in (
            ("getLatestSchemaMetadata", [subject], 40401),
            ("getBySubjectAndId", [subject, 10**6], 40403),
            ("getId", [subject, avro("string"), False], 40401),
        ):
            with pytest.raises(RestError) as missing:
                fresh.call(method, *arguments)
            assert (missing.value.status, missing.value.code) == (404, code)


def test_logins(tmp_path: Path) -> None:
    """A login by name and password, or by a token, is accepted; without either every request is refused."""
    with SecuredRegistry(tmp_path) as secured:
        key = secured.new_key("writer:cdc.shop")
        basic = {"credentialsSource": "USER_INFO", "userInfo": f"{key.key_id}:{key.secret}"}
        bearer = {"credentialsSource": "STATIC_TOKEN", "token": key.bearer}
        bearer |= {"logicalCluster": "none", "identityPoolId": "none"}
        ids = set()
        for config in ({"basicAuthCredentials": basic}, {"bearerAuthCredentials": bearer}):
            with JavaScriptClient(secured.url, **config) as client:
                ids.add(client.call("register", "cdc.shop.t-value", avro(ORDER), False))
                with pytest.raises(RestError) as refused:
                    client.call("register", "cdc.other.t-value", avro(ORDER), False)
                assert refused.value.status == 403
        assert len(ids) == 1
        with JavaScriptClient(secured.url) as anonymous, pytest.raises(RestError) as unknown:
            anonymous.call("getAllSubjects")
        assert unknown.value.status == 401

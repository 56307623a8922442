"""Confluent's Java client, unchanged, against the registry as it is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.schematizer.confluent_java import JavaConfluent, RestError, rest_errors
from tests.support.schematizer.orders import NARROWER, ORDER, WIDER
from tests.support.schematizer.secured_process import SecuredRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.schematizer.registry_process import Registry

pytestmark = pytest.mark.exhaustive  # it downloads 23 MB


@pytest.fixture(scope="module")
def java() -> Iterator[JavaConfluent]:
    with JavaConfluent() as running:
        yield running


@pytest.fixture
def client(java: JavaConfluent, registry: Registry) -> Any:  # noqa: ANN401 - py4j's
    return java.client(registry.url)


def tree(schema: Any) -> Any:  # noqa: ANN401 - a ParsedSchema, JSON
    return json.loads(schema.canonicalString())


def test_registering_is_idempotent(java: JavaConfluent, registry: Registry, client: Any, subject: str) -> None:  # noqa: ANN401 - py4j's
    schema = java.schema(json.dumps(ORDER))
    schema_id = client.register(subject, schema)
    assert java.client(registry.url).register(subject, schema) == schema_id
    assert java.client(registry.url).register(subject, schema, True) == schema_id
    assert java.client(registry.url).register(f"{subject}-2", schema) == schema_id
    full = java.client(registry.url).registerWithResponse(subject, java.schema(json.dumps(WIDER)), False)
    assert full.getId() != schema_id
    assert list(client.getAllVersions(subject)) == [1, 2]


def test_schemas_by_id_and_subject(java: JavaConfluent, registry: Registry, client: Any, subject: str) -> None:  # noqa: ANN401 - py4j's
    schema_id = client.register(subject, java.schema(json.dumps(ORDER)))
    reader = java.client(registry.url)
    assert tree(reader.getSchemaById(schema_id)) == ORDER
    assert tree(java.client(registry.url).getSchemaBySubjectAndId(subject, schema_id)) == ORDER
    latest = reader.getLatestSchemaMetadata(subject)
    assert (latest.getId(), latest.getVersion(), json.loads(latest.getSchema())) == (schema_id, 1, ORDER)
    assert latest.getSchemaType() == "AVRO"
    assert reader.getSchemaMetadata(subject, 1).getId() == schema_id
    assert reader.getByVersion(subject, 1, False).getId() == schema_id
    assert reader.getId(subject, java.schema(json.dumps(ORDER))) == schema_id
    assert reader.getVersion(subject, java.schema(json.dumps(ORDER))) == 1
    assert subject in reader.getAllSubjects()
    assert list(reader.getAllSubjectsByPrefix(subject)) == [subject]
    assert subject in reader.getAllSubjectsById(schema_id)
    assert (subject, 1) in [
        (version.getSubject(), version.getVersion()) for version in reader.getAllVersionsById(schema_id)
    ]


def test_all_schemas_of_a_prefix(java: JavaConfluent, client: Any, subject: str) -> None:  # noqa: ANN401 - py4j's
    for schema in (ORDER, WIDER):
        client.register(subject, java.schema(json.dumps(schema)))
    assert [tree(getSchema) for getSchema in client.getSchemas(subject, False, False)] == [ORDER, WIDER]
    assert [tree(getSchema) for getSchema in client.getSchemas(subject, False, True)] == [WIDER]
    client.deleteSchemaVersion(subject, "2")
    assert [tree(getSchema) for getSchema in client.getSchemas(subject, False, True)] == [ORDER]
    assert [tree(getSchema) for getSchema in client.getSchemas(subject, True, False)] == [ORDER, WIDER]


def test_levels_modes_and_compatibility(java: JavaConfluent, client: Any, subject: str) -> None:  # noqa: ANN401 - py4j's
    wider, narrower = java.schema(json.dumps(WIDER)), java.schema(json.dumps(NARROWER))
    client.register(subject, java.schema(json.dumps(ORDER)))
    assert client.testCompatibility(subject, wider)
    assert not client.testCompatibility(subject, narrower)
    assert list(client.testCompatibilityVerbose(subject, wider)) == []
    assert list(client.testCompatibilityVerbose(subject, narrower))
    with pytest.raises(RestError) as refused, rest_errors():
        client.register(subject, narrower)
    assert (refused.value.status, refused.value.code) == (409, 409)
    assert client.updateCompatibility(subject, "NONE") == "NONE"
    assert client.getCompatibility(subject) == "NONE"
    client.register(subject, narrower)
    client.deleteCompatibility(subject)
    assert client.setMode("READONLY", subject) == "READONLY"
    assert client.getMode(subject) == "READONLY"
    client.deleteMode(subject)
    assert client.getMode() == "READWRITE"


def test_deletion_and_what_is_not_there(java: JavaConfluent, registry: Registry, client: Any, subject: str) -> None:  # noqa: ANN401 - py4j's
    for schema in (ORDER, WIDER):
        client.register(subject, java.schema(json.dumps(schema)))
    assert client.deleteSchemaVersion(subject, "1") == 1
    assert list(client.deleteSubject(subject)) == [2]
    assert list(client.deleteSubject(subject, True)) in ([2], [1, 2])
    fresh = java.client(registry.url)
    for method, arguments, code in (
        ("getLatestSchemaMetadata", [subject], 40401),
        ("getSchemaById", [10**6], 40403),
        ("getId", [subject, java.schema('"string"')], 40401),
    ):
        with pytest.raises(RestError) as missing, rest_errors():
            getattr(fresh, method)(*arguments)
        assert (missing.value.status, missing.value.code) == (404, code)


def test_logins(java: JavaConfluent, tmp_path: Path) -> None:
    """A login by name and password, or by a token, is accepted; without either every request is refused."""
    schema = java.schema(json.dumps(ORDER))
    with SecuredRegistry(tmp_path) as secured:
        key = secured.new_key("writer:cdc.shop")
        basic = {"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": f"{key.key_id}:{key.secret}"}
        bearer = {"bearer_auth_credentials_source": "STATIC_TOKEN", "bearer_auth_token": key.bearer}
        ids = {java.client(secured.url, **login).register("cdc.shop.t-value", schema) for login in (basic, bearer)}
        assert len(ids) == 1
        assert tree(java.client(secured.url, **bearer).getSchemaById(ids.pop())) == ORDER
        for settings, namespace, status in (({}, "shop", 401), (basic, "other", 403)):
            with pytest.raises(RestError) as refused, rest_errors():
                java.client(secured.url, **settings).register(f"cdc.{namespace}.t-value", schema)
            assert refused.value.status == status

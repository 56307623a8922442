"""The REST interface and its Python client, against a running service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import Managed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.schematizer.registry_process import Registry

REST = "/api/v1"


def record(*names: str, key: str = "id") -> str:
    fields = [{"name": "id", "type": "int", "doc": "a number"}]
    more = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "users", "primaryKey": [key], "fields": fields + more})


@pytest.fixture
def client(registry: Registry) -> Iterator[SchematizerClient]:
    with SchematizerClient(registry.url, attempts=2) as opened:
        yield opened


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace for this test alone."""
    return f"rest.{request.node.name}"


def test_the_description_names_every_path(registry: Registry) -> None:
    described = registry.call("GET", f"{REST}/openapi.json").body
    assert described["openapi"].startswith("3.")
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) > 40
    assert all(
        "200" in operation["responses"] or {"201", "204"} & operation["responses"].keys() for operation in operations
    )
    for path in ("/topics/{topic}/schemas/latest", "/namespaces/{namespace}/schemas", "/data-targets/{name}/topics"):
        assert path in described["paths"]


def test_a_schema_from_registration_to_its_topics(client: SchematizerClient, namespace: str) -> None:
    first = client.register(namespace, "avro", record("a"), owner="team", doc="people")
    second = client.register(namespace, "avro", record("a", "b"))
    assert first.topic == second.topic == f"{namespace}.users"
    assert [schema.schema_id for schema in client.schemas(first.topic)] == [first.schema_id, second.schema_id]
    assert client.latest_schema(first.topic).schema_id == second.schema_id
    assert [topic.name for topic in client.topics(schema_id=first.schema_id, namespace=namespace)] == [first.topic]
    assert [topic.name for topic in client.topics_of_source(namespace, "users")] == [first.topic]
    assert json.loads(client.schema_text(first.schema_id))["name"] == "users"
    [source] = client.sources(namespace)
    assert (source.owner, source.doc, source.topics) == ("team", "people", [first.topic])
    assert [(element.path, element.doc, element.is_key) for element in client.elements(second.schema_id)] == [
        ("id", "a number", True),
        ("a", None, False),
        ("b", None, False),
    ]


def test_topics_since_a_time(client: SchematizerClient, namespace: str) -> None:
    first = client.topic(client.register(namespace, "avro", record()).topic)
    second = client.topic(client.register(namespace, "avro", record("a", key="a")).topic)
    names = [topic.name for topic in client.topics(namespace=namespace, created_since=second.created_at)]
    assert names == [second.name]
    names = [topic.name for topic in client.topics(namespace=namespace, created_since=first.created_at)]
    assert names == [first.name, second.name]


def test_compatibility_before_registration(client: SchematizerClient, namespace: str) -> None:
    client.register(namespace, "avro", record("a"))
    assert client.check(namespace, "avro", record("a", "b")).is_compatible
    refused = client.check(namespace, "avro", record("a").replace('"int"', '"string"'))
    assert (refused.is_compatible, refused.rule) == (False, "incompatible")
    assert client.topics(namespace=namespace)[-1].name == f"{namespace}.users"


def test_a_data_target_follows_its_topics(registry: Registry, client: SchematizerClient, namespace: str) -> None:
    client.register(namespace, "avro", record())
    target, group = f"{REST}/data-targets/{namespace}", f"{REST}/data-targets/{namespace}/consumer-groups/{namespace}"
    assert registry.call("PUT", target, {"kind": "redshift", "destination": "cluster"}).status == 200
    reads = {"data_sources": [{"namespace": namespace, "source": None}]}
    assert registry.call("PUT", group, reads).status == 200
    first = client.topics_change(namespace)
    assert (first.added, first.removed) == ([f"{namespace}.users"], [])
    client.register(namespace, "avro", record("a", key="a"))
    client.register(namespace, "avro", record(), source="others")
    second = client.topics_change(namespace, first)
    assert second.added == [f"{namespace}.others", f"{namespace}.users-v2"]
    assert second.cursor > first.cursor
    reads = {"data_sources": [{"namespace": namespace, "source": "others"}]}
    assert registry.call("PUT", group, reads).status == 200
    third = client.topics_change(namespace, second)
    assert (third.added, third.removed) == ([], [f"{namespace}.users", f"{namespace}.users-v2"])
    unchanged = registry.call("GET", f"{target}/topics?cursor={third.cursor}").body
    assert not unchanged["changed"]


def test_a_group_gets_and_loses_sources_and_keeps_the_others(client: SchematizerClient, namespace: str) -> None:
    """Also if the same is said twice, as a program does that says it at each start."""
    for source in "abc":
        client.register(namespace, "avro", record(), source=source)
    client.put_data_target(namespace, "redshift", "cluster")
    last = client.topics_change(namespace)
    for names, added, removed in (
        ("a", "a", ""),
        ("a", "", ""),
        ("ab", "b", ""),
        ("cb", "c", "a"),
        ("b", "", "c"),
        ("", "", "b"),
    ):
        reads = [(namespace, name) for name in names]
        group = client.put_consumer_group(namespace, namespace, reads)
        assert [data_source.source for data_source in group.data_sources] == list(names)
        last = client.topics_change(namespace, last)
        assert last.added == [f"{namespace}.{name}" for name in added]
        assert last.removed == [f"{namespace}.{name}" for name in removed]
    both = [(namespace, None), (namespace, "a")]
    assert len(client.put_consumer_group(namespace, namespace, both).data_sources) == 2
    assert len(client.put_consumer_group(namespace, namespace, both).data_sources) == 2


def test_a_new_table_reaches_the_data_target_of_its_namespace(registry: Registry, client: SchematizerClient) -> None:
    """The table is registered as the materializer does it; its raw topic does not reach the data target."""
    registry.register("follow.shop.a-value", "string")
    registry.call("PUT", f"{REST}/data-targets/follow", {"kind": "search", "destination": "index"})
    reads = {"data_sources": [{"namespace": "follow.shop"}]}
    assert registry.call("PUT", f"{REST}/data-targets/follow/consumer-groups/follow", reads).status == 200
    last = client.topics_change("follow")
    registry.register("follow.shop.b-value", "string")
    registry.register("follow.raw.shop.b-value", "string")
    assert client.topics_change("follow", last).added == ["follow.shop.b"]


def test_producers_and_consumers(registry: Registry, client: SchematizerClient, namespace: str) -> None:
    made = client.register(namespace, "avro", record())
    producer = client.register_producer("team", "service", made.topic, made.schema_id, 60)
    again = client.register_producer("team", "service", made.topic, made.schema_id, 60)
    assert again.last_seen_at > producer.last_seen_at
    assert again.first_seen_at == producer.first_seen_at
    assert not again.is_late
    client.register_consumer("others", "reader", made.topic, "group", 60)
    assert len(registry.call("GET", f"{REST}/producers?topic={made.topic}").body) == 1
    [consumer] = registry.call("GET", f"{REST}/consumers?topic={made.topic}").body
    assert (consumer["team"], consumer["service"], consumer["consumer_group"]) == ("others", "reader", "group")
    for body in ({"topic": "none"}, {"schema_id": 10**6}):
        wanted = {"team": "t", "service": "s", "topic": made.topic, "schema_id": made.schema_id}
        answer = registry.call("POST", f"{REST}/producers", {**wanted, "expected_frequency_seconds": 5, **body})
        assert answer.status == 404


def test_notes_and_tags(registry: Registry, client: SchematizerClient, namespace: str) -> None:
    client.register(namespace, "avro", record())
    [source] = client.sources(namespace)
    about = {"about": "source", "about_id": source.id}
    note = registry.call("POST", f"{REST}/notes", {**about, "text": "first"}).body
    assert registry.call("PUT", f"{REST}/notes/{note['id']}", {"text": "second"}).body["text"] == "second"
    assert [
        entry["text"] for entry in registry.call("GET", f"{REST}/notes?about=source&about_id={source.id}").body
    ] == ["second"]
    assert registry.call("POST", f"{REST}/notes", {**about, "about_id": 10**6, "text": "x"}).status == 404
    assert registry.call("POST", f"{REST}/notes", {**about, "text": " "}).status == 422
    tag = f"{REST}/tags/source/{source.id}"
    for _ in range(2):
        assert registry.status("PUT", f"{tag}/important") == 204
    assert registry.call("GET", tag).body == ["important"]
    assert registry.status("DELETE", f"{tag}/important") == 204
    assert registry.call("GET", tag).body == []
    assert registry.status("DELETE", f"{REST}/notes/{note['id']}") == 204


def test_refreshes(registry: Registry, client: SchematizerClient, namespace: str) -> None:
    client.register(namespace, "avro", record())
    path = f"{REST}/namespaces/{namespace}/sources/users/refreshes"
    made = registry.call("POST", path, {"reason": "a lost topic"})
    assert (made.status, made.body["status"]) == (201, "waiting")
    assert registry.call("POST", path, {"reason": "again"}).status == 409
    one = f"{REST}/refreshes/{made.body['id']}"
    assert registry.call("PUT", one, {"status": "running", "rows_sent": 5}).body["rows_sent"] == 5
    assert registry.call("PUT", one, {"status": "done", "rows_sent": 9}).status == 200
    assert registry.call("PUT", one, {"status": "running", "rows_sent": 9}).status == 409
    assert registry.call("POST", path, {"reason": "again"}).status == 201


def test_statuses(registry: Registry, client: SchematizerClient, namespace: str) -> None:
    first = client.register(namespace, "avro", record())
    client.register(namespace, "avro", record("a"))
    path = f"{REST}/topics/{first.topic}"
    answer = registry.call("PUT", f"{path}/schemas/{first.schema_id}/status", {"status": "disabled"})
    assert [topic_schema["status"] for topic_schema in answer.body] == ["disabled"]
    assert len(registry.call("GET", f"{path}/schemas?status=read-write").body) == 1
    assert registry.call("PUT", f"{path}/status", {"status": "nothing"}).status == 422
    assert registry.call("PUT", f"{path}/status", {"status": "read-only"}).body["status"] == "read-only"


def test_plans(client: SchematizerClient, namespace: str) -> None:
    first, second = (client.register(namespace, "avro", record(*names)).schema_id for names in ((), ("a",)))
    created = client.plan("redshift", "public.users", first)
    assert created[0].startswith('CREATE TABLE "public"."users"')
    assert client.plan("redshift", "users", second, first) == ['ALTER TABLE "users" ADD COLUMN "a" VARCHAR(65535)']
    with pytest.raises(RegistryRequestError, match="no planner oracle"):
        client.plan("oracle", "users", first)


def test_what_is_refused_says_why_and_what_to_do(registry: Registry, client: SchematizerClient) -> None:
    answer = registry.call("GET", f"{REST}/topics/nothing")
    assert (answer.status, answer.body["error"]) == (404, "not-found")
    assert "nothing" in answer.body["message"]
    assert answer.body["fix"]
    assert registry.call("GET", f"{REST}/nowhere").status == 404
    assert registry.call("DELETE", f"{REST}/topics").status == 405
    assert registry.call("POST", f"{REST}/namespaces", {"name": "a b"}).status == 422
    assert registry.call("POST", f"{REST}/namespaces", {"name": "a", "colour": 1}).status == 422
    with pytest.raises(RegistryRequestError) as caught:
        client.topic("nothing")
    assert (caught.value.status, caught.value.word, caught.value.is_retried) == (404, "not-found", False)


@pytest.mark.parametrize(
    ("method", "path", "body", "fix"),
    [
        ("GET", "/schemas/999999", None, "/topics/{topic}/schemas"),
        ("GET", "/schemas/999999/topics", None, "/topics/{topic}/schemas"),
        ("PUT", "/notes/999999", {"text": "x"}, "/notes?about="),
        ("POST", "/notes", {"about": "source", "about_id": 999999, "text": "x"}, "/namespaces/{namespace}/sources"),
        ("PUT", "/tags/topic/999999/a", None, "`id`"),
        ("GET", "/namespaces/none", None, "one path up"),
    ],
)
def test_what_is_not_there_says_where_to_look(
    registry: Registry, method: str, path: str, body: object, fix: str
) -> None:
    """There is no list one path up of what has an id."""
    answer = registry.call(method, f"{REST}{path}", body)
    assert (answer.status, answer.body["error"]) == (404, "not-found")
    assert fix in answer.body["fix"]


def test_a_key_that_is_misspelt_is_refused(registry: Registry, client: SchematizerClient, namespace: str) -> None:
    """A request that sets all of something would clear it, or a group would read a whole namespace."""
    client.register(namespace, "avro", record())
    client.put_data_target(namespace, "redshift", "cluster")
    path = f"{REST}/namespaces/{namespace}/sources/users/documentation"
    group = f"{REST}/data-targets/{namespace}/consumer-groups/{namespace}"
    assert registry.call("PUT", path, {"fields": {"id": {"doc": "mine"}}}).status == 200
    for place, body in (
        (path, {"feilds": {}}),
        (path, {"fields": {"id": {"docs": "x"}}}),
        (group, {"data_sources": [{"namespace": namespace, "sources": "users"}]}),
    ):
        answer = registry.call("PUT", place, body)
        assert (answer.status, answer.body["error"]) == (422, "invalid"), body
        assert "openapi.json" in answer.body["fix"]
    assert client.documentation(namespace, "users").fields["id"].doc == "mine"
    assert client.topics_change(namespace).topics == []


def test_texts_of_schemas_are_asked_for_once(registry: Registry, namespace: str) -> None:
    with SchematizerClient(registry.url, attempts=1) as client:
        schema_id = client.register(namespace, "avro", record()).schema_id
        text = client.schema_text(schema_id)
        latest = client.latest_schema(f"{namespace}.users")
        client._transport.close()
        assert client.schema_text(schema_id) == text
        assert client.latest_schema(f"{namespace}.users") == latest


def test_a_service_that_is_away_for_a_moment(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attempts fail, the third succeeds."""
    with SchematizerClient(registry.url, attempts=3) as client:
        send, failures = client._transport._client.request, [OSError, OSError]

        def request(*arguments: object, **options: object) -> object:
            if failures:
                raise httpx.ConnectError(str(failures.pop()))
            return send(*arguments, **options)  # type: ignore[arg-type] # as they came

        monkeypatch.setattr(client._transport._client, "request", request)
        assert isinstance(client.namespaces(), list)
        assert failures == []


def test_deployments_over_rest(client: SchematizerClient) -> None:
    lease = client.lease("rest-test", "one", 60)
    with pytest.raises(RegistryRequestError) as refused:
        client.lease("rest-test", "two", 60)
    assert refused.value.is_conflict
    client.change_managed("rest-test", lease.token, [Managed(kind="topic", name="a", content={"partitions": 1})])
    assert [(one.name, one.content) for one in client.managed("rest-test", "topic")] == [("a", {"partitions": 1})]
    client.change_managed("rest-test", lease.token, [], [("topic", "a")])
    assert client.managed("rest-test") == []
    client.release("rest-test", lease.token)
    assert client.lease("rest-test", "two", 60, token=None).token == lease.token + 1


def test_a_producer_and_a_consumer_are_removed(client: SchematizerClient, namespace: str) -> None:
    made = client.register(namespace, "avro", record())
    client.register_producer("team", "web", made.topic, made.schema_id, 60)
    for group in ("a", "b"):
        client.register_consumer("team", "billing", made.topic, group, 60)
    client.remove_producer(made.topic, "web")
    client.remove_producer(made.topic, "web")
    client.remove_consumer(made.topic, "billing", "a")
    assert [one.service for one in client.producers() if one.topic == made.topic] == []
    assert [one.consumer_group for one in client.consumers() if one.topic == made.topic] == ["b"]


def test_elements_have_the_marks_of_the_topic_that_is_asked_for(client: SchematizerClient, namespace: str) -> None:
    """Two sources have one schema, and only the second says that a field is personal."""
    first = client.register(namespace, "avro", record("a"), source="first")
    second = client.register(namespace, "avro", record("a"), source="second", fields={"a": {"pii": True}})
    assert first.schema_id == second.schema_id

    def personal(topic: str | None) -> list[str]:
        return [element.path for element in client.elements(first.schema_id, topic) if element.is_pii]

    assert personal(None) == personal(first.topic) == []
    assert personal(second.topic) == ["a"]
    other = client.register(namespace, "avro", record("a", "b"), source="second")
    assert [element.is_pii for element in client.elements(first.schema_id, other.topic)] == [False, True], (
        "of the topic's source, also if another topic has the schema"
    )

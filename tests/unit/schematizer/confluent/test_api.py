"""The API over HTTP, path by path, with Confluent's status codes, error codes and content type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from schematizer.confluent import requests

if TYPE_CHECKING:
    from tests.support.schematizer.registry_process import Registry

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


def record(*fields: dict[str, Any], name: str = "Row") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


A = record({"name": "a", "type": "int"})
AB = record({"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""})
AC = record({"name": "a", "type": "int"}, {"name": "c", "type": "string"})


def union(name: str) -> str:
    """Of so many records that it takes too long to compare it with another one."""
    return json.dumps([record(name=f"{name}{number}") for number in range(400)])


BOMB = json.dumps(
    record(
        {"name": "x", "type": record(*({"name": f"b{number}", "type": "int"} for number in range(200)), name="B")},
        *({"name": f"a{number}", "type": "B"} for number in range(200)),
    )
)
"""A record in many fields: 40,000 of them."""


def test_root_types_and_contexts(registry: Registry) -> None:
    assert registry.call("GET", "/").body == {}
    assert registry.call("GET", "/schemas/types").body == ["AVRO"]
    assert registry.call("GET", "/contexts").body == ["."]


def test_content_type_of_answers_and_errors(registry: Registry) -> None:
    for path in ("/subjects", "/subjects/nobody/versions", "/nowhere", "/schemas/ids/none"):
        assert registry.call("GET", path).content_type == CONTENT_TYPE


def test_versions_of_a_subject(registry: Registry, subject: str) -> None:
    first = registry.register(subject, A)
    second = registry.register(subject, AB)
    assert (first.status, first.body["version"], second.body["version"]) == (200, 1, 2)
    assert registry.register(subject, A).body == first.body
    assert registry.call("GET", f"/subjects/{subject}/versions").body == [1, 2]
    latest = registry.call("GET", f"/subjects/{subject}/versions/latest").body
    assert latest == registry.call("GET", f"/subjects/{subject}/versions/2").body
    assert latest == registry.call("GET", f"/subjects/{subject}/versions/-1").body
    assert (latest["subject"], latest["version"], latest["id"]) == (subject, 2, second.body["id"])
    assert json.loads(latest["schema"]) == AB
    assert registry.call("GET", f"/subjects/{subject}/versions/2/schema").body == AB
    assert registry.call("GET", f"/subjects/{subject}/versions/2/referencedby").body == []
    assert subject in registry.call("GET", "/subjects").body
    assert registry.call("GET", f"/subjects?subjectPrefix={subject}").body == [subject]


def test_all_versions_with_their_schemas(registry: Registry, subject: str) -> None:
    made = [registry.register(f"{subject}-{name}", schema).body for name in "ab" for schema in (A, AB)]
    there = [(f"{subject}-{name}", version) for name in "ab" for version in (1, 2)]

    def versions(more: str = "") -> list[tuple[str, int]]:
        found = registry.call("GET", f"/schemas?subjectPrefix={subject}{more}").body
        return [(schema["subject"], schema["version"]) for schema in found]

    assert versions() == there
    assert versions("&latestOnly=true") == there[1::2]
    assert versions("&offset=1&limit=2") == there[1:3]
    assert versions("&offset=9") == []
    registry.call("DELETE", f"/subjects/{subject}-a/versions/2")
    assert versions("&latestOnly=true") == [there[0], there[3]]
    assert versions("&deleted=true&latestOnly=true") == there[1::2]
    [first, *_] = registry.call("GET", f"/schemas?subjectPrefix={subject}").body
    assert (first["id"], first["guid"], json.loads(first["schema"])) == (made[0]["id"], made[0]["guid"], A)


def test_the_list_of_schemas_is_never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "SEARCH_LIMIT", 2)
    for limit, count in ((-1, 2), (0, 2), (1, 1), (2, 2), (3, 2)):
        assert len(requests.SearchPage(0, limit).select([1, 2, 3])) == count


def test_schemas_by_id(registry: Registry, subject: str) -> None:
    schema_id = registry.register(subject, record(name=f"Only{abs(hash(subject))}")).body["id"]
    other = registry.register(f"{subject}-2", record(name=f"Only{abs(hash(subject))}")).body
    assert other["id"] == schema_id
    answer = registry.call("GET", f"/schemas/ids/{schema_id}?fetchMaxId=true&format=&subject={subject}").body
    assert answer["maxId"] >= schema_id
    assert json.loads(answer["schema"])["fields"] == []
    assert registry.call("GET", f"/schemas/ids/{schema_id}/schema").body == json.loads(answer["schema"])
    assert registry.call("GET", f"/schemas/guids/{answer['guid']}").body["schema"] == answer["schema"]
    assert registry.call("GET", f"/schemas/ids/{schema_id}/subjects").body == [subject, f"{subject}-2"]
    assert registry.call("GET", f"/schemas/ids/{schema_id}/versions").body == [
        {"subject": subject, "version": 1},
        {"subject": f"{subject}-2", "version": 1},
    ]
    assert registry.call("GET", f"/schemas/ids/{schema_id}/subjects?offset=1&limit=1").body == [f"{subject}-2"]


def test_lookup(registry: Registry, subject: str) -> None:
    registry.register(subject, A)
    found = registry.call("POST", f"/subjects/{subject}?normalize=True&deleted=False", {"schema": json.dumps(A)})
    assert (found.status, found.body["version"], found.body["subject"]) == (200, 1, subject)
    spaced = json.dumps({key: A[key] for key in reversed(A)}, indent=4)
    assert registry.call("POST", f"/subjects/{subject}", {"schema": spaced}).body == found.body


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/subjects/nobody/versions", None, 404, 40401),
        ("GET", "/subjects/nobody/versions/1", None, 404, 40401),
        ("POST", "/subjects/nobody", {"schema": '"int"'}, 404, 40401),
        ("DELETE", "/subjects/nobody", None, 404, 40401),
        ("DELETE", "/subjects/nobody/versions/1", None, 404, 40401),
        ("GET", "/subjects/somebody/versions/2", None, 404, 40402),
        ("DELETE", "/subjects/somebody/versions/2", None, 404, 40402),
        ("POST", "/compatibility/subjects/somebody/versions/2", {"schema": '"int"'}, 404, 40402),
        ("POST", "/subjects/somebody", {"schema": '"int"'}, 404, 40403),
        ("GET", "/schemas/ids/999999", None, 404, 40403),
        ("GET", "/schemas/ids/999999/versions", None, 404, 40403),
        ("GET", "/schemas/guids/nonsense", None, 404, 40403),
        ("GET", "/config/nobody", None, 404, 40408),
        ("DELETE", "/config/nobody", None, 404, 40401),
        ("GET", "/mode/nobody", None, 404, 40409),
        ("POST", "/subjects/somebody/versions", {"schema": '"int"'}, 409, 409),
        ("POST", "/subjects/somebody/versions", {"schema": '"integer"'}, 422, 42201),
        ("POST", "/subjects/somebody/versions", {"schema": "{"}, 422, 42201),
        ("POST", "/subjects/somebody/versions", {"schema": ""}, 422, 42201),
        ("POST", "/subjects/somebody/versions", {}, 422, 42201),
        ("POST", "/subjects/somebody/versions", None, 422, 42201),
        ("POST", "/subjects/somebody/versions", {"schema": "[" * 100_000}, 422, 42201),
        ("POST", "/subjects/somebody/versions", {"schema": '{"type": "double", "x": 1e999}'}, 422, 42201),
        ("POST", "/subjects/somebody/versions", {"schema": '{"type": "int", "doc": "\\ud800"}'}, 422, 42201),
        ("POST", "/subjects/somebody/versions", {"schema": '{"type": "int", "doc": "\\u0000"}'}, 422, 42201),
        ("POST", "/subjects/bomb-value/versions", {"schema": BOMB}, 422, 42201),
        ("POST", "/compatibility/subjects/wide/versions", {"schema": union("B")}, 422, 42201),
        ("POST", "/subjects/wide/versions", {"schema": union("B")}, 422, 42201),
        ("GET", f"/schemas/ids/{10**30}", None, 404, 40403),
        ("POST", "/subjects/somebody/versions", {"schema": {"type": "int"}}, 422, 422),
        ("POST", "/subjects/somebody/versions", [], 422, 422),
        ("POST", "/subjects/somebody/versions", b"{", 400, 400),
        ("POST", "/subjects/somebody/versions", {"schema": "{}", "schemaType": "JSON"}, 422, 422),
        ("POST", "/subjects/somebody/versions", {"schema": '"int"', "references": [{"name": "x"}]}, 422, 422),
        ("POST", "/subjects/somebody/versions", {"schema": '"int"', "ruleSet": {"domainRules": []}}, 422, 422),
        ("POST", "/subjects/somebody/versions", {"schema": '"int"', "id": 7}, 422, 42205),
        ("GET", "/subjects/somebody/versions/0", None, 422, 42202),
        ("GET", "/subjects/somebody/versions/two", None, 422, 42202),
        ("GET", "/subjects/somebody/versions/2147483648", None, 422, 42202),
        ("GET", f"/subjects/somebody/versions/{'9' * 5000}", None, 422, 42202),
        ("PUT", "/config", {"compatibility": "SOME"}, 422, 42203),
        ("PUT", "/config/somebody", {}, 422, 42203),
        ("PUT", "/config/somebody", {"compatibility": "NONE", "compatibilityGroup": "x"}, 422, 422),
        ("PUT", "/mode", {"mode": "READONLY_OVERRIDE"}, 422, 42204),
        ("PUT", "/mode", {"mode": "IMPORT"}, 422, 42205),
        ("PUT", "/mode/somebody", {"mode": "IMPORT"}, 422, 42205),
        ("POST", "/subjects/somebody/versions", {"schema": '"int"', "version": 7}, 422, 42205),
        ("POST", "/subjects/somebody/versions", {"schema": '"int"', "id": 2**31}, 422, 422),
        ("POST", "/subjects//versions", {"schema": '"int"'}, 422, 42208),
        ("POST", f"/subjects/{'x' * 600}/versions", {"schema": '"int"'}, 422, 42208),
        ("POST", "/subjects/a%00b/versions", {"schema": '"int"'}, 422, 42208),
        ("POST", "/subjects/%20/versions", {"schema": '"int"'}, 422, 42208),
        ("POST", "/subjects/__EMPTY/versions", {"schema": '"int"'}, 422, 42208),
        ("POST", "/subjects/:.ctx:x/versions", {"schema": '"int"'}, 422, 422),
        ("GET", "/subjects?subjectPrefix=:.ctx:", None, 422, 422),
        ("GET", "/schemas/ids/1/versions?subject=:.ctx:x", None, 422, 422),
        ("GET", "/contexts/.ctx/subjects", None, 422, 422),
        ("POST", "/contexts/.ctx/subjects/x/versions", {"schema": '"int"'}, 422, 422),
        ("POST", "/compatibility/subjects/nobody/versions/1", {"schema": '"int"'}, 404, 40402),
        ("GET", "/schemas/ids/abc", None, 404, 404),
        ("POST", "/subjects/somebody/versions/1/tags", {"schema": '"int"'}, 404, 404),
        ("GET", "/subjects/somebody/metadata", None, 404, 404),
        ("POST", "/subjects/some/body/versions", {"schema": '"int"'}, 404, 404),
        ("GET", "/subjects/somebody", None, 405, 405),
        ("GET", "/nowhere", None, 404, 404),
        ("PATCH", "/subjects", None, 405, 405),
    ],
)
def test_refusals(registry: Registry, method: str, path: str, body: object, *, status: int, code: int) -> None:
    registry.register("somebody", "string")
    registry.call("POST", "/subjects/wide/versions", {"schema": union("A")})
    answer = registry.call(method, path, body)
    assert (answer.status, answer.body["error_code"]) == (status, code)
    assert answer.content_type == CONTENT_TYPE
    assert set(answer.body) == {"error_code", "message"}
    assert answer.body["message"]


def test_an_incompatible_schema_is_told_why(registry: Registry, subject: str) -> None:
    registry.register(subject, A)
    message = registry.register(subject, AC).body["message"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in message
    assert "/fields/1" in message
    assert subject in message


def test_a_subject_may_have_any_printable_name(registry: Registry) -> None:
    for name in ("a%2Fb", "a%20b", "%C3%BC", "com.example.Row", "a%3Fb"):
        assert registry.register(name, "string").status == 200
        assert registry.call("GET", f"/subjects/{name}/versions/latest").status == 200
        assert registry.call("PUT", f"/config/{name}", {"compatibility": "NONE"}).status == 200
        assert registry.call("POST", f"/compatibility/subjects/{name}/versions/latest", {"schema": '"int"'}).body == {
            "is_compatible": True
        }
    assert {"a/b", "a b", "ü", "com.example.Row", "a?b"} <= set(registry.call("GET", "/subjects").body)


def test_levels(registry: Registry, subject: str) -> None:
    path = f"/config/{subject}"
    assert registry.call("GET", "/config").body == {"compatibilityLevel": "BACKWARD"}
    assert registry.call("GET", f"{path}?defaultToGlobal=true").body == {"compatibilityLevel": "BACKWARD"}
    assert registry.call("PUT", path, {"compatibility": "full_transitive"}).body == {"compatibility": "FULL_TRANSITIVE"}
    assert registry.call("GET", path).body == {"compatibilityLevel": "FULL_TRANSITIVE"}
    assert registry.call("PUT", path, {"compatibilityLevel": "NONE"}).status == 200
    registry.register(subject, A)
    assert registry.register(subject, AC).status == 200
    assert registry.call("DELETE", path).body == {"compatibilityLevel": "NONE"}
    assert registry.call("GET", path).body["error_code"] == 40408


def test_normalize_is_kept(registry: Registry, subject: str) -> None:
    """Schemas are always normalised here, so that it changes no answer."""
    path = f"/config/{subject}"
    assert registry.call("PUT", path, {"normalize": True}).body == {"normalize": True}
    assert registry.call("GET", path).body == {"compatibilityLevel": "BACKWARD", "normalize": True}
    both = {"compatibility": "NONE", "normalize": False}
    assert registry.call("PUT", path, both).body == both
    assert registry.call("DELETE", path).body == {"compatibilityLevel": "NONE", "normalize": False}
    assert registry.call("GET", path).body["error_code"] == 40408


def test_compatibility_without_registering(registry: Registry, subject: str) -> None:
    path = f"/compatibility/subjects/{subject}/versions"
    assert registry.call("POST", f"{path}/latest", {"schema": json.dumps(A)}).body == {"is_compatible": True}
    registry.register(subject, A)
    assert registry.call("POST", f"{path}/1", {"schema": json.dumps(AB)}).body == {"is_compatible": True}
    assert registry.call("POST", f"{path}/latest", {"schema": json.dumps(AC)}).body == {"is_compatible": False}
    assert registry.call("POST", path, {"schema": json.dumps(AC)}).body == {"is_compatible": False}
    verbose = registry.call("POST", f"{path}?verbose=True&normalize=False", {"schema": json.dumps(AC)}).body
    assert verbose["is_compatible"] is False
    assert len(verbose["messages"]) == 1
    assert registry.call("GET", f"/subjects/{subject}/versions").body == [1]


def test_compatibility_with_the_latest_version_alone(registry: Registry, subject: str) -> None:
    """Whatever the level: only without a version it is asked for all."""
    registry.call("PUT", f"/config/{subject}", {"compatibility": "NONE"})
    for schema in (A, AC):
        registry.register(subject, schema)
    registry.call("PUT", f"/config/{subject}", {"compatibility": "BACKWARD_TRANSITIVE"})
    path = f"/compatibility/subjects/{subject}/versions"
    answers = [registry.call("POST", f"{path}{end}", {"schema": json.dumps(AC)}).body for end in ("/latest", "/2", "")]
    assert [answer["is_compatible"] for answer in answers] == [True, True, False]


def test_deletion_is_soft_then_permanent(registry: Registry, subject: str) -> None:
    path = f"/subjects/{subject}"
    schema_id = registry.register(subject, A).body["id"]
    registry.register(subject, AB)
    assert registry.call("DELETE", f"{path}/versions/2?permanent=true").body["error_code"] == 40407
    assert registry.call("DELETE", f"{path}/versions/2").body == 2
    assert registry.call("DELETE", f"{path}/versions/2").body["error_code"] == 40406
    assert registry.call("GET", f"{path}/versions").body == [1]
    assert registry.call("GET", f"{path}/versions?deleted=true").body == [1, 2]
    assert registry.call("GET", f"{path}/versions?deletedOnly=true").body == [2]
    assert registry.call("GET", f"{path}/versions/2").body["error_code"] == 40402
    assert registry.call("GET", f"{path}/versions/2?deleted=true").status == 200
    assert registry.register(subject, AB).body["version"] == 3
    assert registry.call("DELETE", f"{path}/versions/latest").body == 3
    assert registry.call("DELETE", f"{path}/versions/2?permanent=true").body == 2

    assert registry.call("DELETE", f"{path}?permanent=true").body["error_code"] == 40405
    assert registry.call("DELETE", path).body == [1]
    assert registry.call("DELETE", path).body["error_code"] == 40404
    assert registry.call("GET", f"/subjects?subjectPrefix={subject}").body == []
    assert registry.call("GET", f"/subjects?subjectPrefix={subject}&deleted=true").body == [subject]
    assert registry.call("GET", f"/subjects?subjectPrefix={subject}&deleted_only=True").body == [subject]
    assert registry.call("POST", f"{path}?deleted=true", {"schema": json.dumps(A)}).body["version"] == 1
    assert registry.call("DELETE", f"{path}?permanent=true").body == [1, 3]
    assert registry.call("GET", f"{path}/versions?deleted=true").body["error_code"] == 40401

    assert json.loads(registry.call("GET", f"/schemas/ids/{schema_id}").body["schema"]) == A
    assert registry.register(subject, A).body["id"] == schema_id


def test_a_deleted_schema_is_not_compared_with(registry: Registry, subject: str) -> None:
    registry.register(subject, A)
    registry.call("DELETE", f"/subjects/{subject}/versions/1")
    assert registry.register(subject, AC).body["version"] == 2


def test_read_only_mode(registry: Registry, subject: str) -> None:
    registry.register(subject, A)
    assert registry.call("PUT", f"/mode/{subject}", {"mode": "READONLY"}).body == {"mode": "READONLY"}
    assert registry.call("GET", f"/mode/{subject}").body == {"mode": "READONLY"}
    assert registry.call("GET", "/mode").body == {"mode": "READWRITE"}
    assert registry.register(subject, A).status == 200
    for answer in (registry.register(subject, AB), registry.call("DELETE", f"/subjects/{subject}")):
        assert answer.body["error_code"] == 42205
    assert registry.call("DELETE", f"/mode/{subject}").body == {"mode": "READONLY"}
    assert registry.register(subject, AB).status == 200


def test_global_level_and_mode(registry: Registry, subject: str) -> None:
    try:
        assert registry.call("PUT", "/config", {"compatibility": "NONE"}).status == 200
        registry.register(subject, A)
        assert registry.register(subject, AC).status == 200
        assert registry.call("PUT", "/mode", {"mode": "READONLY"}).status == 200
        assert registry.register(subject, AB).body["error_code"] == 42205
    finally:
        registry.call("PUT", "/mode", {"mode": "READWRITE"})
        assert registry.call("DELETE", "/config").body == {"compatibilityLevel": "NONE"}
    assert registry.call("GET", "/config").body == {"compatibilityLevel": "BACKWARD"}

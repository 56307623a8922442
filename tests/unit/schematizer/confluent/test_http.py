"""HTTP around the paths: HEAD, slashes, contexts, and the content types of requests and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from schematizer.confluent.http import answered_type
from tests.support.schematizer.registry_process import CONTENT_TYPE

if TYPE_CHECKING:
    from tests.support.schematizer.registry_process import Registry

DEFAULT_TYPE = "application/vnd.schemaregistry+json"
JSON_TYPE = "application/json"
SCHEMA = {"schema": '"int"'}


@pytest.mark.parametrize("content_type", [CONTENT_TYPE, DEFAULT_TYPE, f"{JSON_TYPE}; charset=utf-8", JSON_TYPE.upper()])
def test_a_body_is_json(registry: Registry, subject: str, content_type: str) -> None:
    name = subject.replace("/", "-").replace(" ", "-")
    assert registry.call("POST", f"/subjects/{name}/versions", SCHEMA, content_type=content_type).status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_another_content_type_is_refused(registry: Registry, content_type: str) -> None:
    """A page of another site can send these without asking: the browser sends them as forms."""
    answer = registry.call("POST", "/subjects/nobody/versions", SCHEMA, content_type=content_type)
    assert (answer.status, answer.body["error_code"]) == (415, 415)
    assert content_type in answer.body["message"]


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("", CONTENT_TYPE),
        ("*/*", CONTENT_TYPE),
        (CONTENT_TYPE, CONTENT_TYPE),
        (JSON_TYPE, JSON_TYPE),
        (DEFAULT_TYPE, DEFAULT_TYPE),
        (f"{CONTENT_TYPE}, {DEFAULT_TYPE}, {JSON_TYPE}", CONTENT_TYPE),
        (f"{CONTENT_TYPE};q=0.2, {JSON_TYPE};q=0.9", JSON_TYPE),
        ("application/*", CONTENT_TYPE),
        ("text/html, image/gif, *; q=.2, */*; q=.2", CONTENT_TYPE),
        ("text/plain", None),
        (f"{JSON_TYPE};q=0", None),
        (f"{JSON_TYPE};q=some", None),
    ],
)
def test_the_type_of_an_answer_is_one_that_the_client_accepts(accept: str, answered: str | None) -> None:
    assert answered_type(accept) == answered


def test_answers_have_the_accepted_type(registry: Registry) -> None:
    for path in ("/subjects", "/subjects/nobody/versions", "/schemas/types"):
        assert registry.call("GET", path, accept=JSON_TYPE).content_type == JSON_TYPE
        assert registry.call("GET", path, accept="*/*").content_type == CONTENT_TYPE
    refused = registry.call("GET", "/subjects", accept="text/plain")
    assert (refused.status, refused.body["error_code"]) == (406, 406)
    page = httpx.get(f"{registry.url}/watson/", headers={"Accept": "text/html"})
    assert page.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/", "/subjects", "/config", "/api/v1/namespaces", "/watson/"])
def test_head_is_get_without_its_body(registry: Registry, path: str) -> None:
    full, head = httpx.get(registry.url + path), httpx.head(registry.url + path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Type"] == full.headers["Content-Type"]
    assert abs(int(head.headers["Content-Length"]) - len(full.content)) < 200  # a page has a token


def test_a_slash_at_the_end_changes_nothing(registry: Registry, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    assert registry.call("POST", f"{path}/", SCHEMA).body["version"] == 1
    for tail in ("/subjects", path, f"{path}/1", "/config", "/mode", "/schemas/types"):
        assert registry.call("GET", f"{tail}/").body == registry.call("GET", tail).body
    registry.call("POST", f"/subjects/{subject}%2F/versions", SCHEMA)
    assert f"{subject}/" in registry.call("GET", "/subjects").body


def test_the_default_context_may_be_named(registry: Registry, subject: str) -> None:
    named = registry.call("POST", f"/subjects/:.:{subject}/versions", SCHEMA).body
    assert registry.call("GET", f"/subjects/{subject}/versions/1").body["id"] == named["id"]
    assert registry.call("GET", f"/contexts/:.:/subjects/{subject}/versions").body == [1]
    assert registry.call("GET", f"/contexts/%3A.%3A/subjects?subjectPrefix={subject}").body == [subject]
    for prefix in (":*:", ":.:"):
        assert registry.call("GET", f"/subjects?subjectPrefix={prefix}{subject}").body == [subject]
        assert len(registry.call("GET", f"/schemas?subjectPrefix={prefix}{subject}").body) == 1
    used = registry.call("GET", f"/schemas/ids/{named['id']}/versions?subject=:.:{subject}").body
    assert used == [{"subject": subject, "version": 1}]


def test_who_it_is(registry: Registry) -> None:
    scope = registry.call("GET", "/v1/metadata/id").body["scope"]
    assert scope["clusters"]["schema-registry-cluster"] == "cassandra-schematizer"
    assert registry.call("GET", "/v1/metadata/version").body["version"]

"""Every number that a request may have, beyond 32 and 64 bits: the answers are those of Confluent's registry, no
database's words reach a client, and nothing fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from schematizer.application import REST_PATH, WATSON_PATH
from tests.support.schematizer.secured import RECORD, Secured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi.testclient import TestClient
    from httpx2 import Response

SUBJECT = "cdc.shop.orders-value"
POSITIVE = (2**31, 2**32 + 1, 2_251_799_813_685_248, 2**63 - 1, 2**63, 2**64 + 1, 10**30)
LARGE = (*POSITIVE, -(2**31) - 1, -(2**63) - 1, -(10**30))
DIGITS = "9" * 5000
SAYS = ("sqlite", "integer too large", "python int", "overflow", "psycopg", "traceback", "out of range for type")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    secured = Secured(tmp_path_factory.mktemp("numbers"))
    secured.store.register(SUBJECT, RECORD)
    return secured.client(secured.admin, raise_server_exceptions=False)


def refused(answer: Response) -> Response:
    assert answer.status_code < 500, answer.text
    assert not [word for word in SAYS if word in answer.text.lower()], answer.text
    return answer


@pytest.mark.parametrize("number", [*LARGE, DIGITS])
@pytest.mark.parametrize("part", ["", "/schema", "/versions", "/subjects"])
def test_an_id_that_no_schema_has(client: TestClient, number: object, part: str) -> None:
    answer = refused(client.get(f"/schemas/ids/{number}{part}"))
    assert answer.status_code == 404
    assert answer.json()["error_code"] == (404 if number == DIGITS else 40403)


@pytest.mark.parametrize("number", [*LARGE, DIGITS])
def test_a_version_that_no_subject_has(client: TestClient, number: object) -> None:
    for method, path in (
        ("GET", f"/subjects/{SUBJECT}/versions/{number}"),
        ("GET", f"/subjects/{SUBJECT}/versions/{number}/schema"),
        ("DELETE", f"/subjects/{SUBJECT}/versions/{number}"),
        ("POST", f"/compatibility/subjects/{SUBJECT}/versions/{number}"),
    ):
        body = {"schema": '"int"'} if method == "POST" else None
        answer = refused(client.request(method, path, json=body))
        assert (answer.status_code, answer.json()["error_code"]) == (422, 42202)


@pytest.mark.parametrize("number", LARGE)
def test_a_body_of_a_registration(client: TestClient, number: int) -> None:
    for field, code in (("id", 422), ("version", 42205)):  # a version needs an id, whatever its number is
        answer = refused(client.post("/subjects/other-value/versions", json={"schema": '"int"', field: number}))
        assert (answer.status_code, answer.json()["error_code"]) == (422, code)


@pytest.mark.parametrize("number", LARGE)
@pytest.mark.parametrize("path", ["producers", "consumers"])
def test_the_frequency_of_a_client(client: TestClient, path: str, number: int) -> None:
    body = {"team": "t", "service": "s", "topic": "cdc.shop.orders", "expected_frequency_seconds": number}
    body |= {"schema_id": 1} if path == "producers" else {"consumer_group": "g"}
    answer = refused(client.post(f"{REST_PATH}/{path}", json=body))
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid")


def operations(openapi: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def is_number(schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("integer", "number") or any(map(is_number, schema.get("anyOf", ())))


def numeric_bodies(openapi: dict[str, Any], operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each numeric property of the body, and the body's schema."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    model = openapi["components"]["schemas"].get(name, {})
    for field, schema in model.get("properties", {}).items():
        if is_number(schema):
            yield field, model


EXAMPLES = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def test_every_number_of_the_document(client: TestClient) -> None:
    """Each parameter and each property of a body that is a number, with each large number."""
    openapi = client.get(f"{REST_PATH}/openapi.json").json()
    asked = 0
    for method, path, operation in operations(openapi):
        parameters = operation.get("parameters", [])
        values = {parameter["name"]: _example(parameter) for parameter in parameters}
        for wanted in (parameter for parameter in parameters if is_number(parameter["schema"])):
            for number in (*LARGE, DIGITS):
                given = {**values, wanted["name"]: number}
                asked += 1
                _ask(client, method, REST_PATH + path, parameters, given, None)
        for field, model in numeric_bodies(openapi, operation):
            body = {name: EXAMPLES.get(schema.get("type", ""), "x") for name, schema in model["properties"].items()}
            for number in LARGE:
                asked += 1
                _ask(client, method, REST_PATH + path, parameters, values, {**body, field: number})
    assert asked > 50


def _example(parameter: dict[str, Any]) -> int | str:
    return 1 if is_number(parameter["schema"]) else "cdc.shop.orders"


def _ask(
    client: TestClient,
    method: str,
    path: str,
    parameters: list[dict[str, Any]],
    given: dict[str, int | str],
    body: dict[str, Any] | None,
) -> None:
    filled = path
    for parameter in parameters:
        if parameter["in"] == "path":
            filled = filled.replace("{" + parameter["name"] + "}", str(given[parameter["name"]]))
    query = {
        parameter["name"]: given[parameter["name"]]
        for parameter in parameters
        if parameter["in"] == "query" and parameter.get("required")
    }
    query |= {name: value for name, value in given.items() if is_asked(parameters, name, value)}
    refused(client.request(method, filled, params=query, json=body))


def is_asked(parameters: list[dict[str, Any]], name: str, value: object) -> bool:
    """Whether it is the large number of a query."""
    is_large = value not in (1, "cdc.shop.orders")
    return is_large and any(parameter["name"] == name and parameter["in"] == "query" for parameter in parameters)


@pytest.mark.parametrize("number", [*LARGE, DIGITS])
def test_watson(client: TestClient, number: object) -> None:
    for path in (f"schemas/{number}", f"topics?part={number}", f"clients?part={number}", f"?part={number}"):
        refused(client.get(f"{WATSON_PATH}/{path}"))
    for path in (f"notes/{number}", f"notes/{number}/remove"):
        refused(client.post(f"{WATSON_PATH}/{path}", data={"text": "x"}))

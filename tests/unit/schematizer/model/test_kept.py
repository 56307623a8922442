"""Texts and numbers that some database cannot keep are refused by all: a backup of one is restored into another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from schematizer.application import REST_PATH, WATSON_PATH
from tests.support.schematizer.secured import RECORD, Secured, token_of

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi.testclient import TestClient

LONG = "x" * 250
CLIENT = {"team": "t", "service": "s", "topic": "cdc.shop.orders", "expected_frequency_seconds": 60}
NUMBER = 10**30


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    made = Secured(tmp_path)
    made.store.register("cdc.shop.orders-value", RECORD)
    return made


@pytest.fixture
def client(secured: Secured) -> TestClient:
    return secured.client(secured.admin, raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/namespaces/cdc.shop", {"owner": LONG}),
        ("PUT", "/namespaces/cdc.shop", {"doc": "a\0b"}),
        ("PUT", "/namespaces/cdc.shop/sources/orders/documentation", {"fields": {"a": {"owner": LONG}}}),
        ("POST", "/notes", {"about": "topic", "about_id": 1, "text": "a\0b"}),
        ("POST", "/notes", {"about": "topic", "about_id": NUMBER, "text": "a"}),
        ("POST", "/consumers", {**CLIENT, "team": LONG, "consumer_group": "g"}),
        ("POST", "/consumers", {**CLIENT, "consumer_group": LONG}),
        ("POST", "/producers", {**CLIENT, "service": LONG, "schema_id": 1}),
        ("POST", "/producers", {**CLIENT, "schema_id": 1, "expected_frequency_seconds": NUMBER}),
        ("PUT", "/data-targets/x", {"kind": "k" * 65, "destination": "d"}),
        ("GET", f"/changes?since={NUMBER}", None),
        ("GET", f"/notes?about=topic&about_id={NUMBER}", None),
    ],
)
def test_the_rest_interface_says_what_is_wrong(
    secured: Secured, client: TestClient, method: str, path: str, body: object
) -> None:
    answer = client.request(method, REST_PATH + path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid"), answer.text
    assert secured.metrics.get_sample_value("cdc_schematizer_database_errors_total") == 0


def test_watson_says_what_is_wrong(client: TestClient) -> None:
    assert client.get(f"{WATSON_PATH}/schemas/{NUMBER}").status_code == 404
    form = {"owner": LONG, "csrf_token": token_of(client.get("/sign-in/").text)}
    answer = client.post(f"{WATSON_PATH}/namespaces/cdc.shop", data=form)
    assert answer.status_code == 422
    assert "owner holds 249 characters, not 250" in answer.text


def test_a_time_without_a_zone_is_utc(client: TestClient) -> None:
    for since, count in (("2020-01-01T00:00:00", 1), ("2020-01-01T00:00:00Z", 1), ("9000-01-01T00:00:00", 0)):
        answer = client.get(f"{REST_PATH}/topics", params={"created_since": since})
        assert (answer.status_code, len(answer.json())) == (200, count), answer.text


def test_what_fits_is_kept(client: TestClient) -> None:
    answer = client.put(f"{REST_PATH}/namespaces/cdc.shop", json={"owner": LONG[1:], "doc": LONG * 1000})
    assert answer.json()["owner"] == LONG[1:]

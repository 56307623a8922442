"""Every request passes the hook for access, with the role that it needs and the namespace that it is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry

from schematizer.access import Actor, Role
from schematizer.application import application
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.errors import CatalogueError, Refusal
from schematizer.measures.sampler import NoMeasures
from schematizer.metrics import RegistryMetrics
from schematizer.model.database import opened
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from starlette.requests import Request

SCHEMA = {"schema": json.dumps({"type": "record", "name": "r", "fields": []})}
READER, WRITER, ADMIN = Role.READER, Role.WRITER, Role.ADMIN


class Recording:
    """Remembers what was asked, and allows it up to a role."""

    def __init__(self) -> None:
        self.asked: list[tuple[Role, str | None]] = []
        self.allowed = ADMIN

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:
        assert request.method
        self.asked.append((role, namespace))
        if role > self.allowed:
            raise CatalogueError(Refusal.FORBIDDEN, "You may not.", "Ask.")
        return self.identify(request)

    def identify(self, request: Request) -> Actor:
        assert request.method
        return Actor("somebody")

    def require_one(self, request: Request, role: Role, namespaces: Iterable[str | None]) -> Actor:
        assert namespaces is not None
        return self.require(request, role, None)

    def require_somewhere(self, request: Request, role: Role) -> Actor:
        return self.require(request, role, None)

    def require_login(self, request: Request, role: Role) -> Actor:
        return self.require(request, role, None)


class World:
    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.access = Recording()
        metrics = RegistryMetrics(CollectorRegistry(), store, catalogue.census)
        app = application(store, catalogue, metrics, self.access, NoMeasures())
        self.client = TestClient(app)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        yield World(Store(database, Mirror("pii-")), Catalogue(database, Rules("pii-")))


@pytest.mark.parametrize(
    ("method", "path", "role", "namespace"),
    [
        ("GET", "/subjects", READER, None),
        ("GET", "/schemas/ids/1", READER, None),
        ("POST", "/subjects/cdc.shop.orders-value/versions", WRITER, "cdc.shop"),
        ("POST", "/subjects/pii-cdc.shop.orders-v2-key/versions", WRITER, "cdc.shop"),
        ("POST", "/subjects/a.Record/versions", WRITER, None),
        ("POST", "/subjects/cdc.shop.orders-value", READER, "cdc.shop"),
        ("POST", "/compatibility/subjects/cdc.shop.orders-value/versions", READER, "cdc.shop"),
        ("DELETE", "/subjects/cdc.shop.orders-value", WRITER, "cdc.shop"),
        ("DELETE", "/subjects/cdc.shop.orders-value?permanent=true", ADMIN, "cdc.shop"),
        ("DELETE", "/subjects/cdc.shop.orders-value/versions/1?permanent=1", ADMIN, "cdc.shop"),
        ("GET", "/config/cdc.shop.orders-value", READER, "cdc.shop"),
        ("PUT", "/config/cdc.shop.orders-value", ADMIN, "cdc.shop"),
        ("PUT", "/config", ADMIN, None),
        ("PUT", "/mode", ADMIN, None),
        ("GET", "/api/v1/namespaces", READER, None),
        ("GET", "/api/v1/namespaces/cdc.shop", READER, "cdc.shop"),
        ("GET", "/api/v1/topics/pii-cdc.shop.orders-v2", READER, "cdc.shop"),
        ("POST", "/api/v1/namespaces/cdc.shop/schemas", WRITER, "cdc.shop"),
        ("POST", "/api/v1/namespaces/cdc.shop/compatibility", READER, "cdc.shop"),
        ("PUT", "/api/v1/topics/cdc.shop.orders/status", WRITER, "cdc.shop"),
        ("POST", "/api/v1/notes", WRITER, None),
    ],
)
def test_roles(world: World, method: str, path: str, role: Role, namespace: str | None) -> None:
    """The strongest role that the request asked for; with less it is refused."""
    bodies = {
        "/schemas": {"format": "avro", "text": SCHEMA["schema"]},
        "/compatibility": {"format": "avro", "text": SCHEMA["schema"]},
        "/status": {"status": "disabled"},
        "/notes": {"about": "source", "about_id": 1, "text": "x"},
    }
    body = next((example for end, example in bodies.items() if path.startswith("/api") and path.endswith(end)), SCHEMA)
    world.client.request(method, path, json=None if method in ("GET", "DELETE") else body)
    assert max(world.access.asked) == (role, namespace)
    world.access.allowed = Role(role - 1) if role > READER else READER
    if role > READER:
        refused = world.client.request(method, path, json=None if method == "DELETE" else body)
        assert refused.status_code == 403
        assert "You may not." in refused.json()["message"]


def test_who_writes_stands_in_the_changes(world: World) -> None:
    made = world.client.post("/api/v1/namespaces", json={"name": "a"})
    assert made.status_code == 201
    assert [change.changed_by for change in world.catalogue.history.changes()] == ["somebody"]

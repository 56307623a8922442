"""A registry's application in this process, with security, for a test client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry

from schematizer.application import application
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.measures.sampler import NoMeasures
from schematizer.metrics import RegistryMetrics
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from schematizer.security.keys import ApiKeys
from schematizer.security.service import Security
from schematizer.service import Catalogue
from schematizer.settings import SchematizerSettings

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI

    from schematizer.security.keys import NewApiKey

RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
CLOSED = {"open_reads": False, "open_writes": False}


def token_of(page: str) -> str:
    """The hidden token of the page's forms."""
    found = re.search(r'name="csrf_token" value="([0-9a-f]{64})"', page)
    assert found is not None, page
    return found[1]


class Secured:
    """`app` as it is served; `key` makes an API key in it. The database has an administrator's key before it starts."""

    def __init__(self, folder: Path, **settings: Any) -> None:  # noqa: ANN401 - of SchematizerSettings
        self.settings = SchematizerSettings(database_url=f"sqlite:///{folder}/registry.db", **settings)
        self.database = Database(self.settings.database_url)
        self.admin = self._first_key()
        self.security = Security(self.settings, self.database)
        self.metrics = CollectorRegistry()
        store, self.catalogue = Store(self.database, Mirror("")), Catalogue(self.database, Rules())
        self.app: FastAPI = application(
            store,
            self.catalogue,
            RegistryMetrics(self.metrics, store, self.catalogue.census),
            self.security.access,
            NoMeasures(),
            self.security,
        )
        self.store = store

    def client(self, key: NewApiKey | None = None, base_url: str = "http://127.0.0.1", **settings: Any) -> TestClient:  # noqa: ANN401 - of TestClient
        """Sends the key, if there is one, as Confluent's clients do."""
        client = TestClient(self.app, base_url=base_url, client=("192.0.2.1", 50000), **settings)
        if key is not None:
            client.auth = (key.key.key_id, key.secret)
        return client

    def key(self, *grants: str, name: str = "test") -> NewApiKey:
        return self.security.keys.create(name, grants, None, by="test")

    def refused(self, reason: str) -> float:
        return self.metrics.get_sample_value("cdc_schematizer_refused_requests_total", {"reason": reason}) or 0.0

    def _first_key(self) -> NewApiKey:
        return ApiKeys(self.database).create("first", ["admin:*"], None, by="test")

"""Watson in this process, asked as a browser would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry

from schematizer.access import Actor, Grant, Grants, Role
from schematizer.application import application
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.errors import CatalogueError, Refusal
from schematizer.measures.sampler import NoMeasures
from schematizer.metrics import RegistryMetrics
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue
from schematizer.watson.application import watson_application
from schematizer.watson.site import Site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from schematizer.measures.sampler import Measures
    from schematizer.model.database import Database
    from schematizer.watson.forms import Forms


@dataclass
class LimitedAccess:
    """Someone with a role in some namespaces, or in all of them if none is named."""

    role: Role = Role.ADMIN
    namespaces: tuple[str, ...] = ()

    def identify(self, request: Request) -> Actor:  # noqa: ARG002 - Access's
        return Actor("eve", Grants(tuple(Grant(self.role, namespace) for namespace in self.namespaces or ("*",))))

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:
        return self.require_one(request, role, [namespace])

    def require_one(self, request: Request, role: Role, namespaces: Iterable[str | None]) -> Actor:
        actor = self.identify(request)
        return _allowed(actor, is_allowed=any(actor.grants.allows(role, namespace) for namespace in namespaces))

    def require_somewhere(self, request: Request, role: Role) -> Actor:
        actor = self.identify(request)
        return _allowed(actor, is_allowed=actor.grants.allows_somewhere(role))

    def require_login(self, request: Request, role: Role) -> Actor:
        return self.require(request, role, None)


def _allowed(actor: Actor, *, is_allowed: bool) -> Actor:
    if not is_allowed:
        raise CatalogueError(Refusal.FORBIDDEN, "You may not do this here.", "Ask its owner.")
    return actor


@dataclass
class Watson:
    """`client` asks below /watson."""

    store: Store
    catalogue: Catalogue
    access: LimitedAccess
    client: TestClient

    def with_forms(self, forms: Forms) -> Watson:
        """The same, whose forms are protected in another way."""
        app = FastAPI()
        app.mount("/watson", watson_application(Site(self.catalogue, self.access, NoMeasures(), forms), lambda: None))
        return Watson(self.store, self.catalogue, self.access, TestClient(app))

    def page(self, path: str, status: int = 200) -> str:
        answer = self.client.get(f"/watson{path}")
        assert answer.status_code == status, answer.text
        return answer.text

    def send(self, path: str, expected: int = 303, /, headers: dict[str, str] | None = None, **form: Any) -> str:  # noqa: ANN401 - what the form has
        """The page that a form leads to, or the error page."""
        answer = self.client.post(f"/watson{path}", data=form, headers=headers, follow_redirects=False)
        assert answer.status_code == expected, answer.text
        return answer.headers.get("location", answer.text)


def watson_over(database: Database, measures: Measures | None = None) -> Watson:
    rules = Rules("pii-")
    store, catalogue, access = Store(database, Mirror(rules.pii_prefix)), Catalogue(database, rules), LimitedAccess()
    metrics = RegistryMetrics(CollectorRegistry(), store, catalogue.census)
    app = application(store, catalogue, metrics, access, measures or NoMeasures())
    return Watson(store, catalogue, access, TestClient(app, base_url="http://watson.test"))

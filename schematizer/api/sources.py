"""/namespaces and /sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import (  # noqa: TC001 - as above
    Decision,
    Element,
    Namespace,
    Refresh,
    Source,
)
from schematizer.api.access import Writers, guarded_router
from schematizer.bodies import Described, NewName, RefreshBody  # noqa: TC001 - as above

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = guarded_router(access, catalogue.rules.pii_prefix)
    _namespaces(routes, catalogue, Writers(catalogue, access))
    _sources(routes, catalogue, Writers(catalogue, access))
    _of_a_source(routes, catalogue, Writers(catalogue, access))
    return routes


def _namespaces(routes: APIRouter, catalogue: Catalogue, writers: Writers) -> None:
    @routes.get("/namespaces")
    def namespaces() -> list[Namespace]:
        """All namespaces."""
        return catalogue.namespaces.every()

    @routes.post("/namespaces", status_code=201)
    def add_namespace(body: NewName, request: Request) -> Namespace:
        """Adds a namespace."""
        by = writers.of_namespace(request, body.name)
        return catalogue.namespaces.add(body.name, body.owner, body.doc, by=by)

    @routes.get("/namespaces/{namespace}")
    def namespace(namespace: str) -> Namespace:
        """One namespace."""
        return catalogue.namespaces.get(namespace)

    @routes.put("/namespaces/{namespace}")
    def describe_namespace(namespace: str, body: Described, request: Request) -> Namespace:
        """Sets owner and doc."""
        by = writers.of_namespace(request, namespace)
        return catalogue.namespaces.describe(namespace, body.owner, body.doc, by=by)


def _sources(routes: APIRouter, catalogue: Catalogue, writers: Writers) -> None:
    @routes.get("/sources")
    def sources(owner: str | None = None) -> list[Source]:
        """Sources of all namespaces."""
        return catalogue.sources.every(owner=owner)

    @routes.get("/namespaces/{namespace}/sources")
    def sources_of(namespace: str, owner: str | None = None) -> list[Source]:
        """Sources of a namespace."""
        return catalogue.sources.every(namespace, owner)

    @routes.post("/namespaces/{namespace}/sources", status_code=201)
    def add_source(namespace: str, body: NewName, request: Request) -> Source:
        """Adds a source."""
        by = writers.of_namespace(request, namespace)
        return catalogue.sources.add(namespace, body.name, body.owner, body.doc, by=by)

    @routes.get("/namespaces/{namespace}/sources/{source}")
    def source(namespace: str, source: str) -> Source:
        """One source, with its topics."""
        return catalogue.sources.get(namespace, source)

    @routes.put("/namespaces/{namespace}/sources/{source}")
    def describe_source(namespace: str, source: str, body: Described, request: Request) -> Source:
        """Sets owner and doc."""
        by = writers.of_namespace(request, namespace)
        return catalogue.sources.describe(namespace, source, body.owner, body.doc, by=by)


def _of_a_source(routes: APIRouter, catalogue: Catalogue, writers: Writers) -> None:
    @routes.get("/namespaces/{namespace}/sources/{source}/elements")
    def elements(namespace: str, source: str) -> list[Element]:
        """Fields of its newest enabled schema."""
        return catalogue.schemas.of_source(namespace, source)

    @routes.get("/namespaces/{namespace}/sources/{source}/decisions")
    def decisions(namespace: str, source: str) -> list[Decision]:
        """Why each schema is in its topic, newest last."""
        return catalogue.history.decisions(namespace, source)

    @routes.post("/namespaces/{namespace}/sources/{source}/refreshes", status_code=201)
    def request_refresh(namespace: str, source: str, body: RefreshBody, request: Request) -> Refresh:
        """Requests that all rows are sent again."""
        by = writers.of_namespace(request, namespace)
        return catalogue.refreshes.request(namespace, source, body.reason, by=by)

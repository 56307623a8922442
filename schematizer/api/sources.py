"""/namespaces and /sources."""

from __future__ import annotations

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import (  # noqa: TC001 - as above
    Decision,
    Element,
    Namespace,
    Refresh,
    Source,
)
from schematizer.access import Role
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import guarded_router
from schematizer.bodies import DeprecationBody, Described, NewName, RefreshBody  # noqa: TC001 - as above

router = guarded_router()


@router.get("/namespaces")
def namespaces(parts: PartsDep) -> list[Namespace]:
    """All namespaces."""
    return parts.catalogue.namespaces.every()


@router.post("/namespaces", status_code=201)
def add_namespace(parts: PartsDep, body: NewName, request: Request) -> Namespace:
    """Adds a namespace."""
    by = parts.writers.of_namespace(request, body.name)
    return parts.catalogue.namespaces.add(body.name, body.owner, body.doc, by=by)


@router.get("/namespaces/{namespace}")
def namespace(parts: PartsDep, namespace: str) -> Namespace:
    """One namespace."""
    return parts.catalogue.namespaces.get(namespace)


@router.put("/namespaces/{namespace}")
def describe_namespace(parts: PartsDep, namespace: str, body: Described, request: Request) -> Namespace:
    """Sets owner and doc."""
    by = parts.writers.of_namespace(request, namespace)
    return parts.catalogue.namespaces.describe(namespace, body.owner, body.doc, by=by)


@router.get("/sources")
def sources(parts: PartsDep, owner: str | None = None) -> list[Source]:
    """Sources of all namespaces."""
    return parts.catalogue.sources.every(owner=owner)


@router.get("/namespaces/{namespace}/sources")
def sources_of(parts: PartsDep, namespace: str, owner: str | None = None) -> list[Source]:
    """Sources of a namespace."""
    return parts.catalogue.sources.every(namespace, owner)


@router.post("/namespaces/{namespace}/sources", status_code=201)
def add_source(parts: PartsDep, namespace: str, body: NewName, request: Request) -> Source:
    """Adds a source."""
    by = parts.writers.of_namespace(request, namespace)
    return parts.catalogue.sources.add(namespace, body.name, body.owner, body.doc, by=by)


@router.get("/namespaces/{namespace}/sources/{source}")
def source(parts: PartsDep, namespace: str, source: str) -> Source:
    """One source, with its topics."""
    return parts.catalogue.sources.get(namespace, source)


@router.put("/namespaces/{namespace}/sources/{source}")
def describe_source(parts: PartsDep, namespace: str, source: str, body: Described, request: Request) -> Source:
    """Sets owner and doc."""
    by = parts.writers.of_namespace(request, namespace)
    return parts.catalogue.sources.describe(namespace, source, body.owner, body.doc, by=by)


@router.put("/namespaces/{namespace}/sources/{source}/deprecation")
def deprecate(parts: PartsDep, namespace: str, source: str, body: DeprecationBody, request: Request) -> Source:
    """Says why a source should no longer be read, and which one instead. It works as before."""
    by = parts.writers.of_namespace(request, namespace)
    if body.successor is not None:  # who may not read it does not learn whether it exists
        parts.access.require(request, Role.READER, body.successor.partition("/")[0])
    return parts.catalogue.deprecations.deprecate(namespace, source, body.reason, body.successor, by=by)


@router.delete("/namespaces/{namespace}/sources/{source}/deprecation")
def revoke_deprecation(parts: PartsDep, namespace: str, source: str, request: Request) -> Source:
    """Takes a deprecation back."""
    by = parts.writers.of_namespace(request, namespace)
    return parts.catalogue.deprecations.revoke(namespace, source, by=by)


@router.get("/namespaces/{namespace}/sources/{source}/elements")
def elements(parts: PartsDep, namespace: str, source: str) -> list[Element]:
    """Fields of its newest enabled schema."""
    return parts.catalogue.schemas.of_source(namespace, source)


@router.get("/namespaces/{namespace}/sources/{source}/decisions")
def decisions(parts: PartsDep, namespace: str, source: str) -> list[Decision]:
    """Why each schema is in its topic, newest last."""
    return parts.catalogue.history.decisions(namespace, source)


@router.post("/namespaces/{namespace}/sources/{source}/refreshes", status_code=201)
def request_refresh(parts: PartsDep, namespace: str, source: str, body: RefreshBody, request: Request) -> Refresh:
    """Requests that all rows are sent again."""
    by = parts.writers.of_namespace(request, namespace)
    return parts.catalogue.refreshes.request(namespace, source, body.reason, by=by)

"""Routers whose routes read at least. Routes that write ask for more."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.access import Role
from schematizer.api.access import namespace_of
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations


def guarded_router() -> APIRouter:
    """Return a router whose routes need a reader of the namespace that their path names."""
    return APIRouter(dependencies=[Depends(require_reader)])


def any_role_router() -> APIRouter:
    """Return a router whose routes need a role in any namespace, and then ask for the one that they need."""
    return APIRouter(dependencies=[Depends(require_any_role)])


def require_reader(parts: PartsDep, request: Request) -> None:
    """Raise CatalogueError unless the request may read the namespace that its path names."""
    parts.access.require(request, Role.READER, namespace_of(request, parts.catalogue.rules.pii_prefix))


def require_any_role(parts: PartsDep, request: Request) -> None:
    """Raise CatalogueError unless the request may read some namespace."""
    parts.access.require_somewhere(request, Role.READER)

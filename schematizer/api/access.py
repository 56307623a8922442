"""The rights of a REST request: every route reads at least; those that write ask for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.access import Access, Role
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from schematizer.service import Catalogue


def guarded_router(access: Access, pii_prefix: str) -> APIRouter:
    """A router whose routes need a reader of the namespace that their path names."""

    def reads(request: Request) -> None:
        access.require(request, Role.READER, namespace_of(request, pii_prefix))

    return APIRouter(dependencies=[Depends(reads)])


def any_role_router(access: Access) -> APIRouter:
    """A router whose routes need a role in any namespace, and then ask for the one that they need."""

    def reads(request: Request) -> None:
        access.require_somewhere(request, Role.READER)

    return APIRouter(dependencies=[Depends(reads)])


def namespace_of(request: Request, pii_prefix: str) -> str | None:
    """The path's namespace, or its topic's; None for a path of neither."""
    if "topic" in request.path_params:
        return parse_topic(request.path_params["topic"], pii_prefix).namespace
    found: str | None = request.path_params.get("namespace")
    return found


class Writers:
    """Asks for the right to write."""

    def __init__(self, catalogue: Catalogue, access: Access) -> None:
        self._access = access
        self._pii_prefix = catalogue.rules.pii_prefix

    def of_namespace(self, request: Request, namespace: str | None) -> str:
        """The name of a writer of the namespace (None: of every namespace)."""
        return self._access.require(request, Role.WRITER, namespace).name

    def of_topic(self, request: Request, topic: str) -> str:
        return self.of_namespace(request, self._namespace_of(topic))

    def reader_of_topic(self, request: Request, topic: str) -> str:
        """The name of a reader, for what a reader says of itself."""
        return self._access.require(request, Role.READER, self._namespace_of(topic)).name

    def _namespace_of(self, topic: str) -> str:
        return parse_topic(topic, self._pii_prefix).namespace

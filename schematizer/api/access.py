"""The rights of a REST request: every route reads at least; those that write ask for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.access import Access, Role
from schematizer.errors import CatalogueError
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from schematizer.catalogue.service import Catalogue
    from schematizer.views import Schema


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


class SchemaReaders:
    """Asks for a reader of one of the namespaces that use a schema, as Confluent's API does."""

    def __init__(self, catalogue: Catalogue, access: Access) -> None:
        self._catalogue = catalogue
        self._access = access
        self._pii_prefix = catalogue.rules.pii_prefix

    def readable(self, request: Request, schema_id: int) -> Schema:
        """The schema, with the topics that the actor may read. What is missing and what is forbidden are one answer to
        those who may not read everything.
        """
        if self._access.identify(request).grants.allows(Role.READER, None):
            self._access.require(request, Role.READER, None)
            return self._catalogue.schemas.get(schema_id)
        try:
            found = self._catalogue.schemas.get(schema_id)
        except CatalogueError:
            self._access.require_one(request, Role.READER, ())
            raise
        namespaces = {each.topic: parse_topic(each.topic, self._pii_prefix).namespace for each in found.topics}
        actor = self._access.require_one(request, Role.READER, set(namespaces.values()))
        topics = [each for each in found.topics if actor.grants.allows(Role.READER, namespaces[each.topic])]
        return found.model_copy(update={"topics": topics})

"""Who may read a schema: it belongs to every namespace that uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.access import Role
from schematizer.errors import CatalogueError
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from starlette.requests import Request

    from cdc_common.clients.registry.views import Schema
    from schematizer.access import Access
    from schematizer.catalogue.schemas import Schemas


class SchemaReaders:
    """Asks for a reader of one of the namespaces that use a schema, as Confluent's API does."""

    def __init__(self, schemas: Schemas, access: Access, pii_prefix: str) -> None:
        self._schemas = schemas
        self._access = access
        self._pii_prefix = pii_prefix

    def readable(self, request: Request, schema_id: int) -> Schema:
        """The schema, with the topics that the actor may read. What is missing and what is forbidden are one answer to
        those who may not read everything.
        """
        if self._access.identify(request).grants.allows(Role.READER, None):
            self._access.require(request, Role.READER, None)
            return self._schemas.get(schema_id)
        try:
            found = self._schemas.get(schema_id)
        except CatalogueError:
            self._access.require_one(request, Role.READER, ())
            raise
        namespaces = {topic.topic: parse_topic(topic.topic, self._pii_prefix).namespace for topic in found.topics}
        actor = self._access.require_one(request, Role.READER, set(namespaces.values()))
        topics = [topic for topic in found.topics if actor.grants.allows(Role.READER, namespaces[topic.topic])]
        return found.model_copy(update={"topics": topics})

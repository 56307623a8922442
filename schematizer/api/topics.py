"""/topics and /schemas."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - FastAPI reads annotations
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from cdc_common.clients.registry.views import (  # noqa: TC001 - as above
    Element,
    Schema,
    Topic,
    TopicSchema,
)
from schematizer.access import Role
from schematizer.api.access import Writers, any_role_router, guarded_router
from schematizer.bodies import StatusBody  # noqa: TC001 - as above
from schematizer.catalogue.schema_readers import SchemaReaders
from schematizer.catalogue.target_readers import DataTargetReaders
from schematizer.catalogue.topics import TopicFilter
from schematizer.numbers import GivenId, PathId  # noqa: TC001 - FastAPI reads annotations
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = guarded_router(access, catalogue.rules.pii_prefix)
    _topics_of_source(routes, catalogue)
    _topics(routes, catalogue, Writers(catalogue, access))
    narrowed = any_role_router(access)
    _list(narrowed, catalogue, access)
    _schemas(narrowed, catalogue, SchemaReaders(catalogue.schemas, access, catalogue.rules.pii_prefix), access)
    both = APIRouter()
    both.include_router(routes)
    both.include_router(narrowed)
    return both


def _list(routes: APIRouter, catalogue: Catalogue, access: Access) -> None:
    target_readers = DataTargetReaders(catalogue.data_targets, access)

    @routes.get("/topics")
    def topics(  # noqa: PLR0913, PLR0917 - the query's parameters
        request: Request,
        namespace: str | None = None,
        source: str | None = None,
        data_target: str | None = None,
        schema_id: GivenId | None = None,
        kind: TopicKind | None = None,
        status: Status | None = None,
        created_since: datetime | None = None,
    ) -> list[Topic]:
        """Topics, oldest first. Parameters narrow the list; `created_since` includes that moment. Needs a reader of the
        namespace or of all that the data target reads; with neither, of all namespaces.
        """
        if data_target is not None:
            target_readers.require(request, data_target, may_be_empty=True)
        else:
            access.require(request, Role.READER, namespace)
        wanted = TopicFilter(namespace, source, data_target, schema_id, kind, status, created_since)
        found = catalogue.topics.every(wanted)
        target_readers.require_all(request, (topic.namespace for topic in found))
        return found


def _topics_of_source(routes: APIRouter, catalogue: Catalogue) -> None:
    @routes.get("/namespaces/{namespace}/sources/{source}/topics")
    def topics_of_source(namespace: str, source: str) -> list[Topic]:
        """Topics of a source."""
        catalogue.sources.get(namespace, source)
        return catalogue.topics.every(TopicFilter(namespace, source))


def _topics(routes: APIRouter, catalogue: Catalogue, writers: Writers) -> None:
    @routes.get("/topics/{topic}")
    def topic(topic: str) -> Topic:
        """One topic."""
        return catalogue.topics.get(topic)

    @routes.put("/topics/{topic}/status")
    def set_topic_status(topic: str, body: StatusBody, request: Request) -> Topic:
        """Sets the topic's status."""
        return catalogue.topics.set_status(topic, body.status, by=writers.of_topic(request, topic))

    @routes.get("/topics/{topic}/schemas")
    def schemas(topic: str, part: Part | None = None, status: Status | None = None) -> list[TopicSchema]:
        """Schemas of a topic, oldest first."""
        return catalogue.topics.schemas(topic, part, status)

    @routes.get("/topics/{topic}/schemas/latest")
    def latest_schema(topic: str, part: Part = Part.VALUE) -> TopicSchema:
        """The newest schema that is not disabled."""
        return catalogue.topics.latest_schema(topic, part)

    @routes.put("/topics/{topic}/schemas/{schema_id}/status")
    def set_schema_status(topic: str, schema_id: PathId, body: StatusBody, request: Request) -> list[TopicSchema]:
        """Sets the status of a schema in this topic."""
        by = writers.of_topic(request, topic)
        return catalogue.topics.set_schema_status(topic, schema_id, body.status, by=by)


def _schemas(routes: APIRouter, catalogue: Catalogue, readers: SchemaReaders, access: Access) -> None:
    @routes.get("/schemas/{schema_id}")
    def schema(schema_id: PathId, request: Request) -> Schema:
        """One schema, with its topics that the login may read."""
        return readers.readable(request, schema_id)

    @routes.get("/schemas/{schema_id}/topics")
    def topics_of_schema(schema_id: PathId, request: Request) -> list[Topic]:
        """Topics with this schema that the login may read."""
        readable = {topic_schema.topic for topic_schema in readers.readable(request, schema_id).topics}
        return [topic for topic in catalogue.topics.every(TopicFilter(schema_id=schema_id)) if topic.name in readable]

    @routes.get("/schemas/{schema_id}/elements")
    def elements(schema_id: PathId, request: Request, topic: str | None = None) -> list[Element]:
        """Fields, with the documentation of this topic's source, by default of the first topic with the schema that the
        login may read.
        """
        readable = readers.readable(request, schema_id).topics
        if topic is not None:
            access.require(request, Role.READER, parse_topic(topic, catalogue.rules.pii_prefix).namespace)
        elif readable:
            topic = readable[0].topic
        return catalogue.schemas.elements(schema_id, topic)

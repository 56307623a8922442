"""/topics and /schemas."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - FastAPI reads annotations

from fastapi import APIRouter, Request

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from cdc_common.clients.registry.views import (  # noqa: TC001 - as above
    Element,
    Schema,
    Topic,
    TopicSchema,
)
from schematizer.access import Role
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import any_role_router, guarded_router
from schematizer.bodies import StatusBody  # noqa: TC001 - as above
from schematizer.catalogue.topics import TopicFilter
from schematizer.numbers import GivenId, PathId  # noqa: TC001 - FastAPI reads annotations
from schematizer.topic_names import parse_topic

guarded = guarded_router()
narrowed = any_role_router()


@narrowed.get("/topics")
def topics(  # noqa: PLR0913, PLR0917 - the query's parameters
    parts: PartsDep,
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
        parts.target_readers.require(request, data_target, may_be_empty=True)
    else:
        parts.access.require(request, Role.READER, namespace)
    wanted = TopicFilter(namespace, source, data_target, schema_id, kind, status, created_since)
    found = parts.catalogue.topics.every(wanted)
    parts.target_readers.require_all(request, (topic.namespace for topic in found))
    return found


@guarded.get("/namespaces/{namespace}/sources/{source}/topics")
def topics_of_source(parts: PartsDep, namespace: str, source: str) -> list[Topic]:
    """Topics of a source."""
    parts.catalogue.sources.get(namespace, source)
    return parts.catalogue.topics.every(TopicFilter(namespace, source))


@guarded.get("/topics/{topic}")
def topic(parts: PartsDep, topic: str) -> Topic:
    """One topic."""
    return parts.catalogue.topics.get(topic)


@guarded.put("/topics/{topic}/status")
def set_topic_status(parts: PartsDep, topic: str, body: StatusBody, request: Request) -> Topic:
    """Sets the topic's status."""
    return parts.catalogue.topics.set_status(topic, body.status, by=parts.writers.of_topic(request, topic))


@guarded.get("/topics/{topic}/schemas")
def schemas(parts: PartsDep, topic: str, part: Part | None = None, status: Status | None = None) -> list[TopicSchema]:
    """Schemas of a topic, oldest first."""
    return parts.catalogue.topics.schemas(topic, part, status)


@guarded.get("/topics/{topic}/schemas/latest")
def latest_schema(parts: PartsDep, topic: str, part: Part = Part.VALUE) -> TopicSchema:
    """The newest schema that is not disabled."""
    return parts.catalogue.topics.latest_schema(topic, part)


@guarded.put("/topics/{topic}/schemas/{schema_id}/status")
def set_schema_status(
    parts: PartsDep, topic: str, schema_id: PathId, body: StatusBody, request: Request
) -> list[TopicSchema]:
    """Sets the status of a schema in this topic."""
    by = parts.writers.of_topic(request, topic)
    return parts.catalogue.topics.set_schema_status(topic, schema_id, body.status, by=by)


@narrowed.get("/schemas/{schema_id}")
def schema(parts: PartsDep, schema_id: PathId, request: Request) -> Schema:
    """One schema, with its topics that the login may read."""
    return parts.schema_readers.readable(request, schema_id)


@narrowed.get("/schemas/{schema_id}/topics")
def topics_of_schema(parts: PartsDep, schema_id: PathId, request: Request) -> list[Topic]:
    """Topics with this schema that the login may read."""
    readable = {topic_schema.topic for topic_schema in parts.schema_readers.readable(request, schema_id).topics}
    return [topic for topic in parts.catalogue.topics.every(TopicFilter(schema_id=schema_id)) if topic.name in readable]


@narrowed.get("/schemas/{schema_id}/elements")
def elements(parts: PartsDep, schema_id: PathId, request: Request, topic: str | None = None) -> list[Element]:
    """Fields, with the documentation of this topic's source, by default of the first topic with the schema that the
    login may read.
    """
    readable = parts.schema_readers.readable(request, schema_id).topics
    if topic is not None:
        parts.access.require(request, Role.READER, parse_topic(topic, parts.catalogue.rules.pii_prefix).namespace)
    elif readable:
        topic = readable[0].topic
    return parts.catalogue.schemas.elements(schema_id, topic)


router = APIRouter()
router.include_router(guarded)
router.include_router(narrowed)

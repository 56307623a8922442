"""Topics with their rate and lag, schemas, and what is not used."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.kinds import (
    About,
    TopicKind,
)
from schematizer.access import Role
from schematizer.catalogue.schema_readers import SchemaReaders
from schematizer.catalogue.usage import UNUSED_DAYS
from schematizer.numbers import PathId  # noqa: TC001 - as above
from schematizer.topic_names import parse_topic
from schematizer.watson.site import Crumb, Remarks, SiteDep, paged
from schematizer.watson.topic_files import files_of_topics

router = APIRouter()


_TEXT_SHOWN = 30_000
Days = Annotated[int, Query(ge=0, le=3650)]


@router.get("/topics")
def topics_page(site: SiteDep, request: Request, kind: TopicKind | None = None, part: int = 1) -> HTMLResponse:
    readable = {namespace.name for namespace in site.readable(request)}
    every = [topic for topic in site.catalogue.topics.every() if topic.namespace in readable]
    kinds = sorted({topic.kind for topic in every})
    shown = [topic for topic in every if (topic.kind is not TopicKind.RAW if kind is None else topic.kind is kind)]
    shown.sort(key=lambda topic: (topic.kind is not TopicKind.CHANGE, topic.name))
    topics = paged(shown, part)
    return site.page(
        request,
        "topics.html",
        [Crumb("Topics", site.links(request).to("topics"))],
        topics=topics,
        files=files_of_topics(site.catalogue, topics.rows),
        kinds=kinds,
        kind=kind,
        measures=site.measures,
    )


@router.get("/topics/{topic}")
def topic_page(site: SiteDep, request: Request, topic: str) -> HTMLResponse:
    namespace = site.reads_topic(request, topic)
    catalogue, links = site.catalogue, site.links(request)
    shown = catalogue.topics.get(topic)
    crumbs = [
        Crumb(shown.namespace, links.namespace(shown.namespace)),
        Crumb(shown.source, links.source(shown.namespace, shown.source)),
        Crumb(topic, links.topic(topic)),
    ]
    return site.page(
        request,
        "topic.html",
        crumbs,
        namespace=namespace,
        shown=shown,
        deprecation=catalogue.sources.get(shown.namespace, shown.source).deprecation,
        schemas=catalogue.topics.schemas(topic),
        producers=catalogue.clients.producers(topic),
        consumers=catalogue.clients.consumers(topic),
        groups=catalogue.overview.readers(shown.namespace, shown.source),
        measured=site.measures.of(topic),
        problem=site.measures.problem,
        files=files_of_topics(catalogue, [shown]).get(topic, []),
        remarks=Remarks(About.TOPIC, shown.id),
    )


@router.get("/schemas/{schema_id}")
def schema_page(site: SiteDep, request: Request, schema_id: PathId) -> HTMLResponse:
    prefix = site.catalogue.rules.pii_prefix
    shown = SchemaReaders(site.catalogue.schemas, site.access, prefix).readable(request, schema_id)
    topic = shown.topics[0].topic if shown.topics else None
    text = json.dumps(json.loads(shown.text), indent=2, ensure_ascii=False)
    links = site.links(request)
    return site.page(
        request,
        "schema.html",
        [Crumb(f"Schema {schema_id}", links.schema(schema_id))],
        namespace=None if topic is None else parse_topic(topic, prefix).namespace,
        shown=shown,
        text=text if len(text) <= _TEXT_SHOWN else None,
        elements=site.catalogue.schemas.elements(schema_id, topic)[:100],
        remarks=Remarks(About.SCHEMA, schema_id),
    )


@router.get("/unused")
def unused_page(site: SiteDep, request: Request, days: Days = UNUSED_DAYS, part: int = 1) -> HTMLResponse:
    readable = {namespace.name for namespace in site.readable(request)}
    prefix = site.catalogue.rules.pii_prefix
    unused = site.catalogue.usage.unused(days, site.grants(request))
    found = [(entry, parse_topic(entry.topic, prefix).namespace) for entry in unused]
    writable = {namespace for namespace in readable if site.may(request, Role.WRITER, namespace)}
    return site.page(
        request,
        "unused.html",
        [Crumb("Unused", site.links(request).to("unused"))],
        unused=paged(found, part),
        days=days,
        writable=writable,
    )

"""Producers and consumers, data targets, and tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse  # noqa: TC002 - as above

from cdc_common.clients.registry.kinds import About
from schematizer.catalogue.target_readers import DataTargetReaders
from schematizer.errors import CatalogueError
from schematizer.topic_names import parse_topic
from schematizer.watson.site import Crumb, Remarks, SiteDep, paged
from schematizer.watson.topic_files import files_of_topics

router = APIRouter()

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.clients.registry.views import CatalogueEntry
    from schematizer.watson.site import Site


@router.get("/clients")
def clients_page(site: SiteDep, request: Request, part: int = 1) -> HTMLResponse:
    readable = {namespace.name for namespace in site.readable(request)}
    prefix = site.catalogue.rules.pii_prefix

    def is_seen(topic: str) -> bool:
        return parse_topic(topic, prefix).namespace in readable

    return site.page(
        request,
        "clients.html",
        [Crumb("Producers and consumers", site.links(request).to("clients"))],
        producers=paged([producer for producer in site.catalogue.clients.producers() if is_seen(producer.topic)], part),
        consumers=paged([consumer for consumer in site.catalogue.clients.consumers() if is_seen(consumer.topic)], part),
    )


@router.get("/data-targets")
def targets_page(site: SiteDep, request: Request, part: int = 1) -> HTMLResponse:
    site.readable(request)
    is_seen = site.sees(request)
    return site.page(
        request,
        "targets.html",
        [Crumb("Data targets", site.links(request).to("data-targets"))],
        targets=paged([target for target in site.catalogue.data_targets.every() if is_seen(None, target.name)], part),
    )


@router.get("/data-targets/{name}")
def target_page(site: SiteDep, request: Request, name: str, part: int = 1) -> HTMLResponse:
    readers = DataTargetReaders(site.catalogue.data_targets, site.access)
    readers.require(request, name)
    links = site.links(request)
    shown = site.catalogue.data_targets.get(name)
    groups = site.catalogue.data_targets.groups(name)
    topics = site.catalogue.data_targets.followed_topics(name).topics
    read = [data_source.namespace for group in groups for data_source in group.data_sources]
    readers.require_all(request, [*read, *(topic.namespace for topic in topics)])
    shown_topics = paged(topics, part)
    return site.page(
        request,
        "target.html",
        [Crumb("Data targets", links.to("data-targets")), Crumb(name, links.target(name))],
        shown=shown,
        groups=groups,
        topics=shown_topics,
        files=files_of_topics(site.catalogue, shown_topics.rows),
        measures=site.measures,
        remarks=Remarks(About.DATA_TARGET, shown.id),
    )


@router.get("/tags")
def tags_page(site: SiteDep, request: Request) -> HTMLResponse:
    site.readable(request)
    return site.page(
        request, "tags.html", [Crumb("Tags", site.links(request).to("tags"))], every=site.catalogue.tags.every()
    )


@router.get("/tags/{name:path}")
def tag_page(site: SiteDep, request: Request, name: str, part: int = 1) -> HTMLResponse:
    site.readable(request)
    links = site.links(request)
    is_seen = site.sees(request)
    places = [
        place for place in _places(site, site.catalogue.tags.tagged(name)) if is_seen(place.namespace, place.name)
    ]
    return site.page(
        request,
        "tag.html",
        [Crumb("Tags", links.to("tags")), Crumb(name, links.tag(name))],
        name=name,
        places=paged(places, part),
    )


def _places(site: Site, tagged: Iterable[tuple[About, int]]) -> list[CatalogueEntry]:
    found = []
    for about, about_id in tagged:
        try:
            found.append(site.catalogue.overview.place(about, about_id))
        except CatalogueError:
            continue  # it was removed, its tag was not
    return found

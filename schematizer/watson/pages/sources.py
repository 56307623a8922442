"""Namespaces, sources, fields and the history of schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse  # noqa: TC002 - as above

from cdc_common.clients.registry.kinds import About
from cdc_common.clients.registry.views import Coverage
from schematizer.catalogue.topics import TopicFilter
from schematizer.errors import not_found
from schematizer.measures.sampler import lags_of
from schematizer.watson.differences import differences
from schematizer.watson.site import Crumb, Remarks, SiteDep, paged
from schematizer.watson.topic_files import file_of_source, files_of_topics

router = APIRouter()

if TYPE_CHECKING:
    from cdc_common.clients.registry.views import Element
    from schematizer.watson.links import Links

NO_FIELDS = Coverage(fields=0, documented=0, pii=0)
_FIELDS_AT_ONCE = 100
_VERSIONS_AT_ONCE = 10


@router.get("/")
def front(site: SiteDep, request: Request, part: int = 1) -> HTMLResponse:
    namespaces = paged(site.readable(request), part)
    coverage = site.catalogue.overview.coverage_of_namespaces()
    return site.page(request, "front.html", namespaces=namespaces, coverage=coverage, no_fields=NO_FIELDS)


@router.get("/namespaces/{namespace}")
def namespace_page(site: SiteDep, request: Request, namespace: str, part: int = 1) -> HTMLResponse:
    site.reads(request, namespace)
    shown = site.catalogue.namespaces.get(namespace)
    return site.page(
        request,
        "namespace.html",
        [Crumb(namespace, site.links(request).namespace(namespace))],
        namespace=namespace,
        shown=shown,
        sources=paged(site.catalogue.sources.every(namespace), part),
        coverage=site.catalogue.overview.coverage(namespace),
        no_fields=NO_FIELDS,
        remarks=Remarks(About.NAMESPACE, shown.id),
    )


@router.get("/sources/{namespace}/{source}")
def source_page(site: SiteDep, request: Request, namespace: str, source: str, part: int = 1) -> HTMLResponse:
    site.reads(request, namespace)
    catalogue = site.catalogue
    shown = catalogue.sources.get(namespace, source)
    fields = _named(catalogue.schemas.of_source(namespace, source))
    topics = catalogue.topics.every(TopicFilter(namespace, source))
    return site.page(
        request,
        "source.html",
        _crumbs(site.links(request), namespace, source),
        namespace=namespace,
        shown=shown,
        fields=paged(fields, part, _FIELDS_AT_ONCE),
        coverage=_coverage(fields),
        topics=topics,
        files=files_of_topics(catalogue, topics),
        file=file_of_source(catalogue, namespace, source, topics),
        measures=site.measures,
        lineage=catalogue.lineages.of_source(namespace, source, lags_of(site.measures)),
        decisions=catalogue.history.decisions(namespace, source)[-5:],
        remarks=Remarks(About.SOURCE, shown.id),
    )


@router.get("/sources/{namespace}/{source}/fields/{path:path}")
def field_page(site: SiteDep, request: Request, namespace: str, source: str, path: str) -> HTMLResponse:
    site.reads(request, namespace)
    fields = _named(site.catalogue.schemas.of_source(namespace, source))
    shown = next((field for field in fields if field.path == path), None)
    if shown is None:
        raise not_found("field", f"{path} in {namespace}/{source}", "See the source's history: it may be removed.")
    links = site.links(request)
    return site.page(
        request,
        "field.html",
        [*_crumbs(links, namespace, source), Crumb(path, links.field(namespace, source, path))],
        namespace=namespace,
        source=site.catalogue.sources.get(namespace, source),
        shown=shown,
        file=file_of_source(
            site.catalogue, namespace, source, site.catalogue.topics.every(TopicFilter(namespace, source))
        ),
        inside=[field for field in fields if field.path != path and field.path.startswith((f"{path}.", f"{path}["))],
        remarks=Remarks(About.FIELD, shown.field_id or 0, namespace, source, path),
    )


@router.get("/sources/{namespace}/{source}/history")
def history_page(site: SiteDep, request: Request, namespace: str, source: str, part: int = 1) -> HTMLResponse:
    site.reads(request, namespace)
    start = (max(1, part) - 1) * _VERSIONS_AT_ONCE
    found, total = site.catalogue.overview.versions(namespace, source, start, _VERSIONS_AT_ONCE + 1)
    shown = [
        (version, differences(before.elements, version.elements) if before else None)
        for version, before in zip(found, [*found[1:], None], strict=True)
    ][:_VERSIONS_AT_ONCE]
    links = site.links(request)
    crumbs = [*_crumbs(links, namespace, source), Crumb("History", links.history(namespace, source))]
    return site.page(
        request,
        "history.html",
        crumbs,
        namespace=namespace,
        source=source,
        versions_shown=shown,
        parts=paged(range(total), part, _VERSIONS_AT_ONCE),
    )


def _named(elements: list[Element]) -> list[Element]:
    """A schema that is no record has one element without a name."""
    return [element for element in elements if element.path]


def _coverage(fields: list[Element]) -> Coverage:
    return Coverage(
        fields=len(fields),
        documented=sum(bool(field.doc) for field in fields),
        pii=sum(field.is_pii for field in fields),
    )


def _crumbs(links: Links, namespace: str, source: str) -> list[Crumb]:
    return [Crumb(namespace, links.namespace(namespace)), Crumb(source, links.source(namespace, source))]

"""Changes of all sources, by day."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.kinds import TopicKind
from cdc_common.clients.registry.views import Change
from schematizer.access import Role
from schematizer.model.base import now
from schematizer.topic_names import parse_topic
from schematizer.watson.site import Crumb, SiteDep, paged

if TYPE_CHECKING:
    from schematizer.watson.links import Links

router = APIRouter()

_PERIODS = (1, 7, 30)
_AT_ONCE = 200
Days = Annotated[int, Query(ge=1, le=365)]
_WORDS = {
    "add namespace": "New namespace",
    "add source": "New source",
    "add topic": "New topic",
    "add schema": "New schema",
    "delete schema": "Schema deleted",
    "add producer": "New producer",
    "add consumer": "New consumer",
    "describe namespace": "Docs or owner of namespace",
    "describe source": "Docs or owner of source",
    "document source": "Docs of source",
    "document field": "Docs of field",
    "deprecate source": "Deprecated",
    "revoke deprecation": "No longer deprecated",
    "set status of topic": "Status of topic",
    "set status of schema": "Status of schema",
    "request refresh": "Refresh requested",
    "update refresh": "Refresh",
}
"""The words for an action; others are shown as the catalogue names them."""
_OF_TOPICS = frozenset({"add topic", "set status of topic", "add schema", "delete schema", "set status of schema"})
_OF_CLIENTS = frozenset({"add producer", "add consumer"})


class ShownChange(NamedTuple):
    """A change as a line of the page."""

    # The change.
    change: Change
    # The words for its action.
    words: str
    # The page of the thing that changed; None without one.
    link: str | None
    # The page of the differences of schemas; None for other changes.
    history: str | None


@router.get("/changes")
def changes_page(  # noqa: PLR0913 - the query's parameters
    site: SiteDep, request: Request, days: Days = 7, namespace: str | None = None, part: int = 1, *, raw: bool = False
) -> HTMLResponse:
    namespaces = [found.name for found in site.readable(request)]
    if namespace is not None:
        site.reads(request, namespace)
    wanted = namespaces if namespace is None else [namespace]
    has_rest = namespace is None and site.may(request, Role.READER, None)
    found = site.catalogue.history.since(now() - timedelta(days=days), wanted, has_rest=has_rest)
    prefix = site.catalogue.rules.pii_prefix
    kept = [change for change in found if raw or not _is_of_raw_topic(change, prefix)]
    page, links = paged(kept, part, _AT_ONCE), site.links(request)
    shown = [_shown(change, links, prefix) for change in page.rows]
    return site.page(
        request,
        "changes.html",
        [Crumb("What changed", links.to("changes"))],
        by_day=[(day, list(group)) for day, group in groupby(shown, lambda line: line.change.changed_at.date())],
        parts=page,
        days=days,
        periods=_PERIODS,
        namespaces=namespaces,
        shown_namespace=namespace,
        raw=raw,
    )


def _topic_of(change: Change) -> str | None:
    """The topic that the change is about, or whose schema or client it is about."""
    if change.action in _OF_TOPICS:
        return change.about.partition(": ")[0]
    if change.action in _OF_CLIENTS:
        return change.about.rpartition(" of ")[2]
    return None


def _is_of_raw_topic(change: Change, pii_prefix: str) -> bool:
    topic = _topic_of(change)
    return topic is not None and parse_topic(topic, pii_prefix).kind is TopicKind.RAW


def _shown(change: Change, links: Links, pii_prefix: str) -> ShownChange:
    words = _WORDS.get(change.action, change.action.capitalize())
    topic = _topic_of(change)
    if topic is not None:
        of_topic = parse_topic(topic, pii_prefix)
        is_schema = change.action in ("add schema", "delete schema")
        history = links.history(of_topic.namespace, of_topic.source) if is_schema else None
        return ShownChange(change, words, links.topic(topic), history)
    return ShownChange(change, words, _link_of_source(change, links), None)


def _link_of_source(change: Change, links: Links) -> str | None:
    """The page of a namespace, a source or a field that the change names."""
    if change.namespace is None:
        return None
    if change.about == change.namespace:
        return links.namespace(change.namespace)
    named = change.about.removeprefix(f"{change.namespace}/")
    if named == change.about:
        return None
    source, _, path = named.partition(": ")
    return links.field(change.namespace, source, path) if path else links.source(change.namespace, source)

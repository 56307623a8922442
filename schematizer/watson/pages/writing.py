"""The forms: docs, owners, notes, tags and statuses. Each ends on the page that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import RedirectResponse

from cdc_common.clients.registry.kinds import (
    About,
    Status,
)
from cdc_common.clients.registry.views import CatalogueEntry
from schematizer.access import Role
from schematizer.access.csrf import FIELD
from schematizer.numbers import PathId  # noqa: TC001 - FastAPI reads annotations
from schematizer.watson.site import SiteDep  # noqa: TC001 - as above

if TYPE_CHECKING:
    from schematizer.watson.site import Site

Text = Annotated[str, Form(max_length=100_000)]
Name = Annotated[str, Form(max_length=512)]
Token = Annotated[str, Form(alias=FIELD)]


def check_form(site: SiteDep, request: Request, token: Token = "") -> None:
    """Raise CatalogueError for a form that is not sent by a page of the site. Who has no login and may read nothing is
    asked for a login, not for a form's token.
    """
    site.enters(request)
    site.forms.check(request, token)


router = APIRouter(dependencies=[Depends(check_form)])


@router.post("/namespaces/{namespace}")
def describe_namespace(
    site: SiteDep, request: Request, namespace: str, owner: Name = "", doc: Text = ""
) -> RedirectResponse:
    by = _writer(site, request, namespace)
    site.catalogue.namespaces.describe(namespace, _said(owner), _said(doc), by=by)
    return _to(site.links(request).namespace(namespace))


@router.post("/sources/{namespace}/{source}")
def describe_source(  # noqa: PLR0913, PLR0917 - the path's parts and the form's
    site: SiteDep, request: Request, namespace: str, source: str, owner: Name = "", doc: Text = ""
) -> RedirectResponse:
    by = _writer(site, request, namespace)
    site.catalogue.sources.describe(namespace, source, _said(owner), _said(doc), by=by)
    return _to(site.links(request).source(namespace, source))


@router.post("/sources/{namespace}/{source}/deprecation")
def deprecate(  # noqa: PLR0913, PLR0917 - the path's parts and the form's
    site: SiteDep, request: Request, namespace: str, source: str, reason: Text = "", successor: Name = ""
) -> RedirectResponse:
    """An empty reason takes a deprecation back."""
    by = _writer(site, request, namespace)
    deprecations, why = site.catalogue.deprecations, _said(reason)
    if why is None:
        deprecations.revoke(namespace, source, by=by)
    else:
        instead = _said(successor)
        if instead is not None:  # who may not read it does not learn whether it exists
            site.reads(request, instead.partition("/")[0])
        deprecations.deprecate(namespace, source, why, instead, by=by)
    return _to(site.links(request).source(namespace, source))


@router.post("/sources/{namespace}/{source}/fields/{path:path}")
def describe_field(  # noqa: PLR0913, PLR0917 - the path's parts and the form's
    site: SiteDep, request: Request, namespace: str, source: str, path: str, owner: Name = "", doc: Text = ""
) -> RedirectResponse:
    by = _writer(site, request, namespace)
    site.catalogue.documentation.describe_field(namespace, source, path, _said(doc), _said(owner), by=by)
    return _to(site.links(request).field(namespace, source, path))


@router.post("/data-targets/{name}")
def describe_target(site: SiteDep, request: Request, name: str, owner: Name = "", doc: Text = "") -> RedirectResponse:
    by = _writer(site, request, None)
    known = site.catalogue.data_targets.get(name)
    site.catalogue.data_targets.put(name, known.kind, known.destination, _said(owner), _said(doc), by=by)
    return _to(site.links(request).target(name))


@router.post("/notes")
def add_note(  # noqa: PLR0913, PLR0917 - the form's inputs
    site: SiteDep,
    request: Request,
    about: Annotated[About, Form()],
    about_id: Annotated[int, Form()],
    text: Text,
    namespace: Name = "",
    source: Name = "",
    path: Name = "",
) -> RedirectResponse:
    place, by = _place(site, request, about, about_id, (namespace, source, path))
    site.catalogue.notes.add(about, _id(site, place, about_id), text, by=by)
    return _to(site.links(request).place(place))


@router.post("/notes/{note_id}")
def change_note(site: SiteDep, request: Request, note_id: PathId, text: Text) -> RedirectResponse:
    place, by = _place_of_note(site, request, note_id)
    site.catalogue.notes.change(note_id, text, by=by)
    return _to(site.links(request).place(place))


@router.post("/notes/{note_id}/remove")
def remove_note(site: SiteDep, request: Request, note_id: PathId) -> RedirectResponse:
    place, by = _place_of_note(site, request, note_id)
    site.catalogue.notes.remove(note_id, by=by)
    return _to(site.links(request).place(place))


@router.post("/tags")
def put_tag(  # noqa: PLR0913, PLR0917 - the form's inputs
    site: SiteDep,
    request: Request,
    about: Annotated[About, Form()],
    about_id: Annotated[int, Form()],
    name: Name,
    namespace: Name = "",
    source: Name = "",
    path: Name = "",
) -> RedirectResponse:
    place, by = _place(site, request, about, about_id, (namespace, source, path))
    site.catalogue.tags.put(name.strip(), about, _id(site, place, about_id), by=by)
    return _to(site.links(request).place(place))


@router.post("/tags/remove")
def remove_tag(
    site: SiteDep, request: Request, about: Annotated[About, Form()], about_id: Annotated[int, Form()], name: Name
) -> RedirectResponse:
    place, by = _place(site, request, about, about_id, ("", "", ""))
    site.catalogue.tags.remove(name, about, about_id, by=by)
    return _to(site.links(request).place(place))


@router.post("/topics/{topic}/status")
def set_topic_status(
    site: SiteDep, request: Request, topic: str, status: Annotated[Status, Form()]
) -> RedirectResponse:
    by = _writer(site, request, site.reads_topic(request, topic))
    site.catalogue.topics.set_status(topic, status, by=by)
    return _to(site.links(request).topic(topic))


@router.post("/topics/{topic}/schemas/{schema_id}/status")
def set_schema_status(
    site: SiteDep, request: Request, topic: str, schema_id: PathId, status: Annotated[Status, Form()]
) -> RedirectResponse:
    by = _writer(site, request, site.reads_topic(request, topic))
    site.catalogue.topics.set_schema_status(topic, schema_id, status, by=by)
    return _to(site.links(request).topic(topic))


def _writer(site: Site, request: Request, namespace: str | None) -> str:
    return site.access.require(request, Role.WRITER, namespace).name


def _place(
    site: Site, request: Request, about: About, about_id: int, field: tuple[str, str, str]
) -> tuple[CatalogueEntry, str]:
    """Return the subject of the form, and the name of its writer. `field`: of a field without an id."""
    if about is About.FIELD and about_id == 0:
        namespace, source, path = field
        place = CatalogueEntry(about=about, namespace=namespace, source=source, name=path)
    else:
        place = site.catalogue.overview.place(about, about_id)
    return place, _writer(site, request, place.namespace)


def _place_of_note(site: Site, request: Request, note_id: PathId) -> tuple[CatalogueEntry, str]:
    note = site.catalogue.notes.get(note_id)
    return _place(site, request, note.about, note.about_id, ("", "", ""))


def _id(site: Site, place: CatalogueEntry, about_id: int) -> int:
    if place.about is About.FIELD and about_id == 0:
        return site.catalogue.documentation.field_id(place.namespace or "", place.source or "", place.name)
    return about_id


def _said(text: str) -> str | None:
    """Browsers send lines with CRLF."""
    return text.replace("\r\n", "\n").strip() or None


def _to(link: str) -> RedirectResponse:
    return RedirectResponse(link, status_code=303)

"""/notes, /tags, /refreshes and /changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from cdc_common.clients.registry.kinds import About, RefreshStatus  # noqa: TC001 - as above
from cdc_common.clients.registry.views import Change, Note, Refresh  # noqa: TC001 - as above
from schematizer.access import Role
from schematizer.api.access import Writers, any_role_router, guarded_router
from schematizer.bodies import NoteBody, NoteText, RefreshProgress  # noqa: TC001 - FastAPI reads annotations
from schematizer.numbers import Cursor, GivenId, PathId  # noqa: TC001 - as above

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue

Limit = Annotated[int, Query(ge=1, le=10_000)]


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes, writers = guarded_router(access, catalogue.rules.pii_prefix), Writers(catalogue, access)
    _notes(routes, catalogue, writers)
    _tags(routes, catalogue, writers)

    @routes.get("/refreshes")
    def refreshes(status: RefreshStatus | None = None) -> list[Refresh]:
        """Requests to send all rows again, and their progress."""
        return catalogue.refreshes.every(status)

    @routes.put("/refreshes/{refresh_id}")
    def update_refresh(refresh_id: PathId, body: RefreshProgress, request: Request) -> Refresh:
        """Updates the progress: for the program that carries it out."""
        by = writers.of_namespace(request, None)
        return catalogue.refreshes.update(refresh_id, body.status, body.rows_sent, by=by)

    both = APIRouter()
    both.include_router(routes)
    both.include_router(_changes(catalogue, access))
    return both


def _changes(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = any_role_router(access)

    @routes.get("/changes")
    def changes(request: Request, since: Cursor = 0, namespace: str | None = None, limit: Limit = 1000) -> list[Change]:
        """Writes to the catalogue after the change `since`, in the order of commit: to a namespace, or to all."""
        access.require(request, Role.READER, namespace)
        return catalogue.history.changes(since, namespace, limit)

    return routes


def _notes(routes: APIRouter, catalogue: Catalogue, writers: Writers) -> None:
    @routes.get("/notes")
    def notes(about: About, about_id: GivenId) -> list[Note]:
        """Notes about one thing."""
        return catalogue.notes.about(about, about_id)

    @routes.post("/notes", status_code=201)
    def add_note(body: NoteBody, request: Request) -> Note:
        """Adds a note, in Markdown."""
        by = writers.of_namespace(request, None)
        return catalogue.notes.add(body.about, body.about_id, body.text, by=by)

    @routes.put("/notes/{note_id}")
    def change_note(note_id: PathId, body: NoteText, request: Request) -> Note:
        """Changes a note."""
        return catalogue.notes.change(note_id, body.text, by=writers.of_namespace(request, None))

    @routes.delete("/notes/{note_id}", status_code=204)
    def remove_note(note_id: PathId, request: Request) -> None:
        """Removes a note."""
        catalogue.notes.remove(note_id, by=writers.of_namespace(request, None))


def _tags(routes: APIRouter, catalogue: Catalogue, writers: Writers) -> None:
    @routes.get("/tags")
    def tags() -> dict[str, int]:
        """Each tag, and how often it is used."""
        return catalogue.tags.every()

    @routes.get("/tags/{about}/{about_id}")
    def tags_about(about: About, about_id: PathId) -> list[str]:
        """Tags of one thing."""
        return catalogue.tags.about(about, about_id)

    @routes.put("/tags/{about}/{about_id}/{name}", status_code=204)
    def put_tag(about: About, about_id: PathId, name: str, request: Request) -> None:
        """Adds a tag."""
        catalogue.tags.put(name, about, about_id, by=writers.of_namespace(request, None))

    @routes.delete("/tags/{about}/{about_id}/{name}", status_code=204)
    def remove_tag(about: About, about_id: PathId, name: str, request: Request) -> None:
        """Removes a tag."""
        catalogue.tags.remove(name, about, about_id, by=writers.of_namespace(request, None))

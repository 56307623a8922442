"""/notes, /tags, /refreshes and /changes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from cdc_common.clients.registry.kinds import About, RefreshStatus  # noqa: TC001 - as above
from cdc_common.clients.registry.views import Change, Note, Refresh  # noqa: TC001 - as above
from schematizer.access import Role
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import any_role_router, guarded_router
from schematizer.bodies import NoteBody, NoteText, RefreshProgress  # noqa: TC001 - FastAPI reads annotations
from schematizer.numbers import Cursor, GivenId, PathId  # noqa: TC001 - as above

Limit = Annotated[int, Query(ge=1, le=10_000)]

guarded = guarded_router()
narrowed = any_role_router()


@guarded.get("/notes")
def notes(parts: PartsDep, about: About, about_id: GivenId) -> list[Note]:
    """Notes about one thing."""
    return parts.catalogue.notes.about(about, about_id)


@guarded.post("/notes", status_code=201)
def add_note(parts: PartsDep, body: NoteBody, request: Request) -> Note:
    """Adds a note, in Markdown."""
    by = parts.writers.of_namespace(request, None)
    return parts.catalogue.notes.add(body.about, body.about_id, body.text, by=by)


@guarded.put("/notes/{note_id}")
def change_note(parts: PartsDep, note_id: PathId, body: NoteText, request: Request) -> Note:
    """Changes a note."""
    return parts.catalogue.notes.change(note_id, body.text, by=parts.writers.of_namespace(request, None))


@guarded.delete("/notes/{note_id}", status_code=204)
def remove_note(parts: PartsDep, note_id: PathId, request: Request) -> None:
    """Removes a note."""
    parts.catalogue.notes.remove(note_id, by=parts.writers.of_namespace(request, None))


@guarded.get("/tags")
def tags(parts: PartsDep) -> dict[str, int]:
    """Each tag, and how often it is used."""
    return parts.catalogue.tags.every()


@guarded.get("/tags/{about}/{about_id}")
def tags_about(parts: PartsDep, about: About, about_id: PathId) -> list[str]:
    """Tags of one thing."""
    return parts.catalogue.tags.about(about, about_id)


@guarded.put("/tags/{about}/{about_id}/{name}", status_code=204)
def put_tag(parts: PartsDep, about: About, about_id: PathId, name: str, request: Request) -> None:
    """Adds a tag."""
    parts.catalogue.tags.put(name, about, about_id, by=parts.writers.of_namespace(request, None))


@guarded.delete("/tags/{about}/{about_id}/{name}", status_code=204)
def remove_tag(parts: PartsDep, about: About, about_id: PathId, name: str, request: Request) -> None:
    """Removes a tag."""
    parts.catalogue.tags.remove(name, about, about_id, by=parts.writers.of_namespace(request, None))


@guarded.get("/refreshes")
def refreshes(parts: PartsDep, status: RefreshStatus | None = None) -> list[Refresh]:
    """Requests to send all rows again, and their progress."""
    return parts.catalogue.refreshes.every(status)


@guarded.put("/refreshes/{refresh_id}")
def update_refresh(parts: PartsDep, refresh_id: PathId, body: RefreshProgress, request: Request) -> Refresh:
    """Updates the progress: for the program that carries it out."""
    by = parts.writers.of_namespace(request, None)
    return parts.catalogue.refreshes.update(refresh_id, body.status, body.rows_sent, by=by)


@narrowed.get("/changes")
def changes(
    parts: PartsDep, request: Request, since: Cursor = 0, namespace: str | None = None, limit: Limit = 1000
) -> list[Change]:
    """Writes to the catalogue after the change `since`, in the order of commit: to a namespace, or to all."""
    parts.access.require(request, Role.READER, namespace)
    return parts.catalogue.history.changes(since, namespace, limit)


router = APIRouter()
router.include_router(guarded)
router.include_router(narrowed)

"""The paths of the API. Other query parameters of Confluent's API are accepted and ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request

from schematizer.confluent import requests
from schematizer.confluent.requests import Body, DeletedQuery, PageQuery, SchemaId, SearchQuery, Subject  # noqa: TC001 - FastAPI reads annotations
from schematizer.confluent.responses import SchemaResponse
from schematizer.model.registry_tables import GLOBAL

if TYPE_CHECKING:
    from schematizer.confluent.guard import Guard
    from schematizer.confluent.store import Registered, Store

Flag = Annotated[bool, Query()]
MaxIdFlag = Annotated[bool, Query(alias="fetchMaxId")]
PrefixText = Annotated[str, Query(alias="subjectPrefix")]
LatestFlag = Annotated[bool, Query(alias="latestOnly")]
GlobalFlag = Annotated[bool, Query(alias="defaultToGlobal")]


def routers(store: Store, guard: Guard) -> list[APIRouter]:
    """Return the routers in the order of matching. Paths with subjects come last: a subject may contain slashes, so
    they match the most.
    """
    return [
        _root(),
        _schemas(store, guard),
        _compatibility(store),
        _config(store),
        _mode(store),
        *_subjects(store, guard),
    ]


def _root() -> APIRouter:
    router = APIRouter()

    @router.get("/")
    def root() -> dict[str, Any]:
        """An empty object: the registry is up."""
        return {}

    @router.get("/contexts")
    def contexts() -> list[str]:
        """The only context, `.`."""
        return ["."]

    @router.get("/schemas/types")
    def types() -> list[str]:
        """The only schema type, AVRO."""
        return ["AVRO"]

    return router


def _schemas(store: Store, guard: Guard) -> APIRouter:
    router = APIRouter(prefix="/schemas")

    @router.get("")
    def every(
        request: Request,
        page: SearchQuery,
        prefix: PrefixText = "",
        *,
        deleted: Flag = False,
        latest: LatestFlag = False,
    ) -> list[dict[str, Any]]:
        """Versions with their schemas, 1,000 at most, of subjects that the login may read."""
        sees = guard.sees(request)

        def choose(found: list[tuple[str, int]]) -> list[tuple[str, int]]:
            seen = [version for version in found if sees(version[0])]
            return page.select(list(dict(seen).items()) if latest else seen)  # of a subject the last one stays

        return [_as_json(registered) for registered in store.every_version(choose, prefix, deleted=deleted)]

    @router.get("/ids/{schema_id}")
    def schema(schema_id: SchemaId, *, max_id: MaxIdFlag = False) -> dict[str, Any]:
        """The schema with this id."""
        text, guid = store.schema(schema_id)
        return {"schema": text, "guid": guid} | ({"maxId": store.max_id()} if max_id else {})

    @router.get("/ids/{schema_id}/schema")
    def schema_alone(schema_id: SchemaId) -> SchemaResponse:
        """The schema's text alone."""
        return SchemaResponse(store.schema(schema_id)[0])

    @router.get("/ids/{schema_id}/versions")
    def uses(
        request: Request, schema_id: SchemaId, page: PageQuery, subject: str | None = None, *, deleted: Flag = False
    ) -> list[dict[str, Any]]:
        """Subjects and versions with this schema."""
        sees = guard.sees(request)
        found = [
            {"subject": name, "version": version}
            for name, version in store.uses(schema_id, deleted=deleted)
            if subject in (None, name) and sees(name)
        ]
        return page.select(found)

    @router.get("/ids/{schema_id}/subjects")
    def subjects(
        request: Request, schema_id: SchemaId, page: PageQuery, subject: str | None = None, *, deleted: Flag = False
    ) -> list[str]:
        """Subjects with this schema."""
        sees = guard.sees(request)
        names = dict.fromkeys(name for name, _ in store.uses(schema_id, deleted=deleted))
        return page.select([name for name in names if subject in (None, name) and sees(name)])

    @router.get("/guids/{guid}")
    def schema_of_guid(guid: str) -> dict[str, Any]:
        """The schema with this hash."""
        return {"schema": store.schema_of_guid(guid), "guid": guid}

    return router


def _compatibility(store: Store) -> APIRouter:
    router = APIRouter(prefix="/compatibility/subjects/{subject:path}/versions")

    def check(subject: str, body: object, version: str | None, *, verbose: bool) -> dict[str, Any]:
        messages = store.check_compatibility(subject, requests.schema_text(body), version)
        return {"is_compatible": not messages} | ({"messages": messages} if verbose else {})

    @router.post("/{version}")
    def with_version(subject: Subject, version: str, body: Body, *, verbose: Flag = False) -> dict[str, Any]:
        """Whether the schema is compatible with this version."""
        return check(subject, body, version, verbose=verbose)

    @router.post("")
    def with_versions(subject: Subject, body: Body, *, verbose: Flag = False) -> dict[str, Any]:
        """Whether the schema is compatible with the versions that the subject's level names."""
        return check(subject, body, None, verbose=verbose)

    return router


def _config(store: Store) -> APIRouter:
    router = APIRouter(prefix="/config")

    @router.get("")
    def global_level() -> dict[str, str]:
        """The compatibility level of subjects without one of their own."""
        return {"compatibilityLevel": store.level(GLOBAL, or_global=True).name}

    @router.put("")
    def set_global_level(body: Body) -> dict[str, str]:
        """Sets that level."""
        level = requests.level(body)
        store.set_level(GLOBAL, level)
        return {"compatibility": level.name}

    @router.delete("")
    def delete_global_level() -> dict[str, str]:
        """Resets it to BACKWARD, and answers with the one before."""
        return {"compatibilityLevel": store.delete_level(GLOBAL).name}

    @router.get("/{subject:path}")
    def level_of(subject: Subject, *, or_global: GlobalFlag = False) -> dict[str, str]:
        """The subject's level."""
        return {"compatibilityLevel": store.level(subject, or_global=or_global).name}

    @router.put("/{subject:path}")
    def set_level(subject: Subject, body: Body) -> dict[str, str]:
        """Sets the subject's level."""
        level = requests.level(body)
        store.set_level(subject, level)
        return {"compatibility": level.name}

    @router.delete("/{subject:path}")
    def delete_level(subject: Subject) -> dict[str, str]:
        """Removes the subject's level, and answers with it."""
        return {"compatibilityLevel": store.delete_level(subject).name}

    return router


def _mode(store: Store) -> APIRouter:
    router = APIRouter(prefix="/mode")

    @router.get("")
    def global_mode() -> dict[str, str]:
        """READWRITE or READONLY."""
        return {"mode": store.mode(GLOBAL, or_global=True)}

    @router.put("")
    def set_global_mode(body: Body) -> dict[str, str]:
        """Sets the mode of subjects without one of their own."""
        mode = requests.mode(body)
        store.set_mode(GLOBAL, mode)
        return {"mode": mode}

    @router.get("/{subject:path}")
    def mode_of(subject: Subject, *, or_global: GlobalFlag = False) -> dict[str, str]:
        """The subject's mode."""
        return {"mode": store.mode(subject, or_global=or_global)}

    @router.put("/{subject:path}")
    def set_mode(subject: Subject, body: Body) -> dict[str, str]:
        """Sets the subject's mode."""
        mode = requests.mode(body)
        store.set_mode(subject, mode)
        return {"mode": mode}

    @router.delete("/{subject:path}")
    def delete_mode(subject: Subject) -> dict[str, str]:
        """Removes the subject's mode, and answers with it."""
        return {"mode": store.delete_mode(subject)}

    return router


def _subjects(store: Store, guard: Guard) -> list[APIRouter]:
    return [_subject_list(store, guard), _versions(store), _subject(store)]


def _subject_list(store: Store, guard: Guard) -> APIRouter:
    router = APIRouter()

    @router.get("/subjects")
    def subjects(request: Request, deleted: DeletedQuery, page: PageQuery, prefix: PrefixText = "") -> list[str]:
        """Subjects that the login may read."""
        found = store.subjects(prefix, deleted=deleted.too, only_deleted=deleted.nothing_else)
        return page.select(list(filter(guard.sees(request), found)))

    return router


def _versions(store: Store) -> APIRouter:
    router = APIRouter(prefix="/subjects/{subject:path}/versions")

    @router.get("/{version}/schema")
    def schema(subject: Subject, version: str, *, deleted: Flag = False) -> SchemaResponse:
        """The version's schema alone."""
        return SchemaResponse(store.version(subject, version, deleted=deleted).text)

    @router.get("/{version}/referencedby")
    def referenced_by(subject: Subject, version: str) -> list[int]:
        """An empty list: schemas have no references."""
        store.version(subject, version, deleted=True)
        return []

    @router.get("/{version}")
    def version(subject: Subject, version: str, *, deleted: Flag = False) -> dict[str, Any]:
        """One version, by number or `latest`."""
        return _as_json(store.version(subject, version, deleted=deleted))

    @router.delete("/{version}")
    def delete(subject: Subject, version: str, *, permanent: Flag = False) -> int:
        """Deletes the version: softly, or with `permanent` after that for good."""
        return store.delete_version(subject, version, permanent=permanent)

    @router.get("")
    def numbers(subject: Subject, deleted: DeletedQuery, page: PageQuery) -> list[int]:
        """The subject's version numbers."""
        return page.select(store.versions(subject, deleted=deleted.too, only_deleted=deleted.nothing_else))

    @router.post("")
    def register(subject: Subject, body: Body) -> dict[str, Any]:
        """Registers the schema, and answers with its id. Idempotent."""
        registered = store.register(subject, requests.schema_text(body))
        return {"id": registered.schema_id, "version": registered.version, "guid": registered.guid}

    return router


def _subject(store: Store) -> APIRouter:
    router = APIRouter(prefix="/subjects/{subject:path}")

    @router.post("")
    def lookup(subject: Subject, body: Body, *, deleted: Flag = False) -> dict[str, Any]:
        """The version that has this schema."""
        return _as_json(store.lookup(subject, requests.schema_text(body), deleted=deleted))

    @router.delete("")
    def delete(subject: Subject, *, permanent: Flag = False) -> list[int]:
        """Deletes all versions: softly, or with `permanent` after that for good."""
        return store.delete_subject(subject, permanent=permanent)

    return router


def _as_json(registered: Registered) -> dict[str, Any]:
    return {
        "subject": registered.subject,
        "version": registered.version,
        "id": registered.schema_id,
        "guid": registered.guid,
        "schema": registered.text,
    }

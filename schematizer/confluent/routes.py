"""The paths of the API. Other query parameters of Confluent's API are accepted and ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from cdc_common.messages.envelope import VERSION
from schematizer.confluent import errors, requests
from schematizer.confluent.parts import SeesDep, StoreDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.confluent.requests import (  # noqa: TC001 - FastAPI reads annotations
    Body,
    DeletedQuery,
    PageQuery,
    SchemaId,
    SearchQuery,
    Subject,
    SubjectFilter,
    SubjectPrefix,
)
from schematizer.confluent.responses import SchemaResponse
from schematizer.model.registry_tables import GLOBAL

if TYPE_CHECKING:
    from schematizer.confluent.levels_and_modes import Config
    from schematizer.confluent.store import Registered, Store

Flag = Annotated[bool, Query()]
MaxIdFlag = Annotated[bool, Query(alias="fetchMaxId")]
LatestFlag = Annotated[bool, Query(alias="latestOnly")]
GlobalFlag = Annotated[bool, Query(alias="defaultToGlobal")]

root_routes = APIRouter()
schema_routes = APIRouter(prefix="/schemas")
compatibility_routes = APIRouter(prefix="/compatibility/subjects/{subject:path}/versions")
config_routes = APIRouter(prefix="/config")
mode_routes = APIRouter(prefix="/mode")
subject_list_routes = APIRouter()
version_routes = APIRouter(prefix="/subjects/{subject:path}/versions")
subject_routes = APIRouter(prefix="/subjects/{subject:path}")

# In the order of matching. Paths with subjects come last: a subject may contain slashes, so they match the most.
ROUTERS = (
    root_routes,
    schema_routes,
    compatibility_routes,
    config_routes,
    mode_routes,
    subject_list_routes,
    version_routes,
    subject_routes,
)


@root_routes.get("/")
def root() -> dict[str, Any]:
    """An empty object: the registry is up."""
    return {}


@root_routes.get("/contexts")
def contexts() -> list[str]:
    """The only context, `.`."""
    return ["."]


@root_routes.get("/contexts/{context:path}")
@root_routes.post("/contexts/{context:path}")
@root_routes.put("/contexts/{context:path}")
@root_routes.delete("/contexts/{context:path}")
def in_context(context: str) -> None:
    """Refused: a path in any other context. A path in the default one is read as the path without it."""
    raise errors.other_context(context.partition("/")[0])


@root_routes.get("/v1/metadata/id")
def cluster_id() -> dict[str, Any]:
    """The name of this kind of registry, as Confluent's answers with the id of its cluster."""
    return {"id": "", "scope": {"path": [], "clusters": {"schema-registry-cluster": "cassandra-schematizer"}}}


@root_routes.get("/v1/metadata/version")
def server_version() -> dict[str, str]:
    """The version of this program."""
    return {"version": VERSION, "commitId": ""}


@root_routes.get("/schemas/types")
def types() -> list[str]:
    """The only schema type, AVRO."""
    return ["AVRO"]


@schema_routes.get("")
def search_schemas(  # noqa: PLR0913 - the query's parameters
    store: StoreDep,
    sees: SeesDep,
    page: SearchQuery,
    prefix: SubjectPrefix = "",
    *,
    deleted: Flag = False,
    latest: LatestFlag = False,
) -> list[dict[str, Any]]:
    """Versions with their schemas, 1,000 at most, of subjects that the login may read."""

    def choose(found: list[tuple[str, int]]) -> list[tuple[str, int]]:
        seen = [version for version in found if sees(version[0])]
        return page.select(list(dict(seen).items()) if latest else seen)  # of a subject the last one stays

    return [_as_json(registered) for registered in store.every_version(choose, prefix, deleted=deleted)]


@schema_routes.get("/ids/{schema_id}")
def schema_of_id(store: StoreDep, schema_id: SchemaId, *, max_id: MaxIdFlag = False) -> dict[str, Any]:
    """The schema with this id."""
    text, guid = store.schema(schema_id)
    return {"schema": text, "guid": guid} | ({"maxId": store.max_id()} if max_id else {})


@schema_routes.get("/ids/{schema_id}/schema")
def text_of_id(store: StoreDep, schema_id: SchemaId) -> SchemaResponse:
    """The schema's text alone."""
    return SchemaResponse(store.schema(schema_id)[0])


@schema_routes.get("/ids/{schema_id}/versions")
def versions_of_id(  # noqa: PLR0913 - the query's parameters
    store: StoreDep,
    sees: SeesDep,
    schema_id: SchemaId,
    page: PageQuery,
    subject: SubjectFilter = None,
    *,
    deleted: Flag = False,
) -> list[dict[str, Any]]:
    """Subjects and versions with this schema."""
    found = [
        {"subject": name, "version": version}
        for name, version in store.uses(schema_id, deleted=deleted)
        if subject in (None, name) and sees(name)
    ]
    return page.select(found)


@schema_routes.get("/ids/{schema_id}/subjects")
def subjects_of_id(  # noqa: PLR0913 - the query's parameters
    store: StoreDep,
    sees: SeesDep,
    schema_id: SchemaId,
    page: PageQuery,
    subject: SubjectFilter = None,
    *,
    deleted: Flag = False,
) -> list[str]:
    """Subjects with this schema."""
    names = dict.fromkeys(name for name, _ in store.uses(schema_id, deleted=deleted))
    return page.select([name for name in names if subject in (None, name) and sees(name)])


@schema_routes.get("/guids/{guid}")
def schema_of_guid(store: StoreDep, guid: str) -> dict[str, Any]:
    """The schema with this hash."""
    return {"schema": store.schema_of_guid(guid), "guid": guid}


@compatibility_routes.post("/{version}")
def with_version(
    store: StoreDep, subject: Subject, version: str, body: Body, *, verbose: Flag = False
) -> dict[str, Any]:
    """Whether the schema is compatible with this version."""
    return _check(store, subject, body, version, verbose=verbose)


@compatibility_routes.post("")
def with_versions(store: StoreDep, subject: Subject, body: Body, *, verbose: Flag = False) -> dict[str, Any]:
    """Whether the schema is compatible with the versions that the subject's level names."""
    return _check(store, subject, body, None, verbose=verbose)


@config_routes.get("")
def global_level(store: StoreDep) -> dict[str, Any]:
    """The compatibility level of subjects without one of their own."""
    return _config_as_json(store.config(GLOBAL, or_global=True), "compatibilityLevel")


@config_routes.put("")
def set_global_level(store: StoreDep, body: Body) -> dict[str, Any]:
    """Sets that level, and `normalize`, which is kept: schemas are always normalised."""
    config = requests.config(body)
    store.set_config(GLOBAL, config)
    return _config_as_json(config, "compatibility")


@config_routes.delete("")
def delete_global_level(store: StoreDep) -> dict[str, Any]:
    """Resets it to BACKWARD, and answers with the one before."""
    return _config_as_json(store.delete_config(GLOBAL), "compatibilityLevel")


@config_routes.get("/{subject:path}")
def level_of(store: StoreDep, subject: Subject, *, or_global: GlobalFlag = False) -> dict[str, Any]:
    """The subject's level."""
    return _config_as_json(store.config(subject, or_global=or_global), "compatibilityLevel")


@config_routes.put("/{subject:path}")
def set_level(store: StoreDep, subject: Subject, body: Body) -> dict[str, Any]:
    """Sets the subject's level, and `normalize`."""
    config = requests.config(body)
    store.set_config(subject, config)
    return _config_as_json(config, "compatibility")


@config_routes.delete("/{subject:path}")
def delete_level(store: StoreDep, subject: Subject) -> dict[str, Any]:
    """Removes the subject's level, and answers with it."""
    return _config_as_json(store.delete_config(subject), "compatibilityLevel")


@mode_routes.get("")
def global_mode(store: StoreDep) -> dict[str, str]:
    """READWRITE, READONLY or IMPORT."""
    return {"mode": store.mode(GLOBAL, or_global=True)}


@mode_routes.put("")
def set_global_mode(store: StoreDep, body: Body, *, force: Flag = False) -> dict[str, str]:
    """Sets the mode of subjects without one of their own. IMPORT needs an empty registry, or `force`."""
    mode = requests.mode(body)
    store.set_mode(GLOBAL, mode, force=force)
    return {"mode": mode}


@mode_routes.get("/{subject:path}")
def mode_of(store: StoreDep, subject: Subject, *, or_global: GlobalFlag = False) -> dict[str, str]:
    """The subject's mode."""
    return {"mode": store.mode(subject, or_global=or_global)}


@mode_routes.put("/{subject:path}")
def set_mode(store: StoreDep, subject: Subject, body: Body, *, force: Flag = False) -> dict[str, str]:
    """Sets the subject's mode. IMPORT needs a subject without versions, or `force`."""
    mode = requests.mode(body)
    store.set_mode(subject, mode, force=force)
    return {"mode": mode}


@mode_routes.delete("/{subject:path}")
def delete_mode(store: StoreDep, subject: Subject) -> dict[str, str]:
    """Removes the subject's mode, and answers with it."""
    return {"mode": store.delete_mode(subject)}


@subject_list_routes.get("/subjects")
def subjects(
    store: StoreDep, sees: SeesDep, deleted: DeletedQuery, page: PageQuery, prefix: SubjectPrefix = ""
) -> list[str]:
    """Subjects that the login may read."""
    found = store.subjects(prefix, deleted=deleted.too, only_deleted=deleted.nothing_else)
    return page.select(list(filter(sees, found)))


@version_routes.get("/{version}/schema")
def schema_of_version(store: StoreDep, subject: Subject, version: str, *, deleted: Flag = False) -> SchemaResponse:
    """The version's schema alone."""
    return SchemaResponse(store.version(subject, version, deleted=deleted).text)


@version_routes.get("/{version}/referencedby")
def referenced_by(store: StoreDep, subject: Subject, version: str) -> list[int]:
    """An empty list: schemas have no references."""
    store.version(subject, version, deleted=True)
    return []


@version_routes.get("/{version}")
def version(store: StoreDep, subject: Subject, version: str, *, deleted: Flag = False) -> dict[str, Any]:
    """One version, by number or `latest`."""
    return _as_json(store.version(subject, version, deleted=deleted))


@version_routes.delete("/{version}")
def delete_version(store: StoreDep, subject: Subject, version: str, *, permanent: Flag = False) -> int:
    """Deletes the version: softly, or with `permanent` after that for good."""
    return store.delete_version(subject, version, permanent=permanent)


@version_routes.get("")
def numbers(store: StoreDep, subject: Subject, deleted: DeletedQuery, page: PageQuery) -> list[int]:
    """The subject's version numbers."""
    return page.select(store.versions(subject, deleted=deleted.too, only_deleted=deleted.nothing_else))


@version_routes.post("")
def register(store: StoreDep, subject: Subject, body: Body) -> dict[str, Any]:
    """Registers the schema, and answers with its id. In mode IMPORT the body gives `id` and `version`. Idempotent."""
    registered = store.register(subject, *requests.sent_schema(body))
    return {"id": registered.schema_id, "version": registered.version, "guid": registered.guid}


@subject_routes.post("")
def lookup(store: StoreDep, subject: Subject, body: Body, *, deleted: Flag = False) -> dict[str, Any]:
    """The version that has this schema."""
    return _as_json(store.lookup(subject, requests.schema_text(body), deleted=deleted))


@subject_routes.delete("")
def delete_subject(store: StoreDep, subject: Subject, *, permanent: Flag = False) -> list[int]:
    """Deletes all versions: softly, or with `permanent` after that for good."""
    return store.delete_subject(subject, permanent=permanent)


def _check(store: Store, subject: str, body: object, version: str | None, *, verbose: bool) -> dict[str, Any]:
    messages = store.check_compatibility(subject, requests.schema_text(body), version)
    return {"is_compatible": not messages} | ({"messages": messages} if verbose else {})


def _as_json(registered: Registered) -> dict[str, Any]:
    return {
        "subject": registered.subject,
        "version": registered.version,
        "id": registered.schema_id,
        "guid": registered.guid,
        "schema": registered.text,
    }


def _config_as_json(config: Config, level: str) -> dict[str, Any]:
    """The configuration, with the level under the name that the answer has for it."""
    named = {level: config.level and config.level.name, "normalize": config.normalize}
    return {name: value for name, value in named.items() if value is not None}

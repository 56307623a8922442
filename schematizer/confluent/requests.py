"""The body and the query of a request, parsed as leniently as Confluent's registry does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from schematizer.avro_schemas.compatibility import Level
from schematizer.confluent import errors
from schematizer.confluent.contexts import plain_prefix, plain_subject
from schematizer.confluent.http import check_content_type, has_shape_of_route
from schematizer.confluent.levels_and_modes import MODES, Config
from schematizer.confluent.store import Given
from schematizer.model.registry_tables import SUBJECT_LENGTH
from schematizer.numbers import LARGEST_INT, LARGEST_LONG

_RESERVED = ("__GLOBAL", "__EMPTY")
"""Confluent's registry keeps these names for itself."""
_NOT_CHOSEN = (None, -1, 0)
"""The id and the version of a request that chooses none."""
SEARCH_LIMIT = 1000
"""Versions in one answer with all their schemas, as in Confluent's registry."""

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)


class SchemaRequest(BaseModel):
    """The body of a registration, a lookup or a compatibility check."""

    model_config = ConfigDict(populate_by_name=True)

    # The schema's text.
    schema_text: Annotated[str | None, Field(alias="schema")] = None
    # The kind of schema; only AVRO is taken.
    schema_type: Annotated[str | None, Field(alias="schemaType")] = None
    # References to other schemas; only none is taken.
    references: list[dict[str, Any]] | None = None
    # Confluent's metadata; only none is taken.
    metadata: dict[str, Any] | None = None
    # Confluent's rules; only none are taken.
    rule_set: Annotated[dict[str, Any] | None, Field(alias="ruleSet")] = None
    # The id of the schema, for a subject in mode IMPORT.
    id: int | None = None
    # The number of the version, together with an id.
    version: int | None = None


class ConfigRequest(BaseModel):
    """The body of PUT /config; what is not here is refused if it says something."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    # The compatibility level.
    compatibility: str | None = None
    # The same, by its older name.
    compatibility_level: Annotated[str | None, Field(alias="compatibilityLevel")] = None
    # Whether schemas are normalised before they are compared. Here they always are.
    normalize: bool | None = None


class ModeRequest(BaseModel):
    """The body of PUT /mode."""

    # The mode.
    mode: str | None = None


def _known(schema_id: int) -> int:
    if not 0 <= schema_id <= LARGEST_INT:
        raise errors.schema_not_found(schema_id if abs(schema_id) <= LARGEST_LONG else None)
    return schema_id


async def _body(request: Request) -> Any:  # noqa: ANN401 - JSON
    check_content_type(request)
    try:
        return json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError) as error:
        raise errors.RegistryError(400, f"The body is not JSON: {error}") from error


async def _subject(request: Request, subject: str) -> str:
    if not has_shape_of_route(request.scope):
        raise errors.not_found()
    name = plain_subject(subject)
    if not name.strip() or len(name) > SUBJECT_LENGTH or not name.isprintable() or name in _RESERVED:
        raise errors.invalid_subject(subject)
    return name


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: at most `limit` items from `offset` on. A limit below 1 is no limit."""

    # The number of items that are skipped.
    offset: int = 0
    # The number of items at most; below 1 there is no limit.
    limit: int = -1

    def select(self, items: list[T]) -> list[T]:
        rest = items[max(self.offset, 0) :]
        return rest[: self.limit] if self.limit > 0 else rest


@dataclass(frozen=True, slots=True)
class Deleted:
    """Whether to list soft-deleted versions too, or only them."""

    # Whether to list soft-deleted versions as well.
    too: Annotated[bool, Query(alias="deleted")] = False
    # Whether to list only them.
    only: Annotated[bool, Query(alias="deletedOnly")] = False
    # The spelling of confluent-kafka's client.
    only_by_client: Annotated[bool, Query(alias="deleted_only")] = False

    @property
    def nothing_else(self) -> bool:
        return self.only or self.only_by_client


@dataclass(frozen=True, slots=True)
class SearchPage(Page):
    """A Page of a list that is never returned whole, because its items are large."""

    # The number of items at most.
    limit: int = SEARCH_LIMIT

    def select(self, items: list[T]) -> list[T]:
        limit = self.limit if 0 < self.limit < SEARCH_LIMIT else SEARCH_LIMIT
        return Page(self.offset, limit).select(items)


PageQuery = Annotated[Page, Depends()]
SearchQuery = Annotated[SearchPage, Depends()]
DeletedQuery = Annotated[Deleted, Depends()]
Body = Annotated[Any, Depends(_body)]
SchemaId = Annotated[int, AfterValidator(_known)]
"""An id in a path: one that no schema can have is not found."""
Subject = Annotated[str, Depends(_subject)]
SubjectPrefix = Annotated[str, Query(alias="subjectPrefix"), AfterValidator(plain_prefix)]
SubjectFilter = Annotated[str | None, AfterValidator(lambda subject: subject and plain_subject(subject))]
"""A subject in a query: the list is narrowed to it."""


def schema_text(body: object) -> str:
    """The Avro schema of a request, as text. Unsupported parts are errors; they are never dropped."""
    return _text(_read(SchemaRequest, body))


def sent_schema(body: object) -> tuple[str, Given | None]:
    """The schema of a registration, and the id and version that the client chooses."""
    request = _read(SchemaRequest, body)
    version = None if request.version in _NOT_CHOSEN else request.version
    if request.id in _NOT_CHOSEN:
        if version is not None:
            raise errors.operation_not_permitted("A version is given without the id of its schema")
        return _text(request), None
    if not 0 < (request.id or 0) <= LARGEST_INT or not 0 < (version or 1) <= LARGEST_INT:
        raise errors.unprocessable(f"An id and a version lie between 1 and {LARGEST_INT}.")
    return _text(request), Given(request.id or 0, version)


def _text(request: SchemaRequest) -> str:
    if request.schema_type not in (None, "", "AVRO"):
        raise errors.unprocessable(f"The schema type {request.schema_type} is not supported; this registry keeps AVRO.")
    if request.references:
        raise errors.unprocessable("Schema references are not supported; write the referenced types into the schema.")
    if request.metadata or request.rule_set:
        raise errors.unprocessable("Metadata and rule sets are not supported.")
    if not request.schema_text:
        raise errors.invalid_schema("it is empty")
    return request.schema_text


def config(body: object) -> Config:
    """The configuration of a request."""
    request = _read(ConfigRequest, body)
    further = [key for key, value in (request.model_extra or {}).items() if value]
    if further:
        raise errors.unprocessable(f"Not supported in a configuration: {', '.join(further)}.")
    name = request.compatibility or request.compatibility_level
    if name is None and request.normalize is not None:
        return Config(None, request.normalize)
    try:
        return Config(Level[(name or "").upper()], request.normalize)
    except KeyError:
        raise errors.invalid_level(name or "") from None


def mode(body: object) -> str:
    name = _read(ModeRequest, body).mode
    if name is None or name.upper() not in MODES:
        raise errors.invalid_mode(name)
    return name.upper()


def _read(model: type[Model], body: object) -> Model:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise errors.unprocessable(f"{where}: {first['msg']}") from error

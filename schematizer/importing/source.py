"""Reads everything of another registry with Confluent's API."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.transport import Transport
from schematizer.avro_schemas.compatibility import Level
from schematizer.avro_schemas.parsing import InvalidSchemaError, parse
from schematizer.model.registry_queries import READ_ONLY, READ_WRITE
from schematizer.model.registry_tables import GLOBAL, SUBJECT_LENGTH
from schematizer.numbers import LARGEST_INT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_common.settings import RegistrySettings

_CONNECTIONS = 8
_HEADERS = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
_MISSING = 404
_KEPT_OF_CONFIG = frozenset({"compatibilityLevel", "compatibility", "normalize"})
_NOT_KEPT_OF_SCHEMA = {"references": "references", "metadata": "metadata", "ruleSet": "a rule set"}
_MODES = (READ_WRITE, READ_ONLY)


class SourceVersion(NamedTuple):
    """A version of the other registry."""

    # The subject's name.
    subject: str
    # The version's number.
    number: int
    # The schema's id.
    schema_id: int
    # The canonical text of the schema.
    text: str
    # Whether the version is softly deleted.
    is_deleted: bool


class SubjectSettings(NamedTuple):
    """The settings of a subject (GLOBAL: of all others) in the other registry; None for what is not set."""

    # The subject's name.
    subject: str
    # The compatibility level.
    level: str | None
    # Whether schemas are normalised.
    normalize: bool | None
    # The mode.
    mode: str | None


class Content(NamedTuple):
    """Everything of the other registry."""

    # The versions, in the order of subjects and numbers.
    versions: list[SourceVersion]
    # The settings that say something.
    settings: list[SubjectSettings]
    # What this registry cannot keep, each as a sentence.
    refused: list[str]


class SourceRegistry:
    """The other registry. RegistryRequestError if it does not answer, or refuses to."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._transport = Transport.of_settings(settings, headers=_HEADERS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def read(self) -> Content:
        """Everything that it has now. Several connections read at the same time."""
        refused: list[str] = []
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            subjects = sorted(self._get("subjects", deleted="true"))
            refused += [reason for reason in map(_name_problem, subjects) if reason]
            kept = [subject for subject in subjects if not _name_problem(subject)]
            numbered = chain.from_iterable(pool.map(self._numbers, kept))
            found = list(pool.map(self._version, numbered))
            settings = list(pool.map(self._settings, (GLOBAL, *kept)))
        versions = [version for version in found if isinstance(version, SourceVersion)]
        refused += [reason for reason in found if isinstance(reason, str)]
        refused += chain.from_iterable(reasons for _, reasons in settings)
        return Content(versions, [found for found, _ in settings if any(found[1:])], refused)

    def _numbers(self, subject: str) -> list[tuple[str, int, bool]]:
        """Subject, number, and whether it is deleted, of each of its versions."""
        path = ("subjects", subject, "versions")
        every = self._get(*path, deleted="true")
        alive = set(self._get_or(*path, missing=()))
        return [(subject, number, number not in alive) for number in every]

    def _version(self, numbered: tuple[str, int, bool]) -> SourceVersion | str:
        """The version, or why this registry cannot keep it."""
        subject, number, is_deleted = numbered
        found = self._get("subjects", subject, "versions", str(number), deleted="true")
        problem = _schema_problem(found)
        if problem is None:
            try:
                text = parse(found["schema"]).canonical
            except InvalidSchemaError as error:
                problem = f"is not an Avro schema: {error}"
            else:
                return SourceVersion(subject, number, found["id"], text, is_deleted)
        return f"Version {number} of subject {subject} {problem}."

    def _settings(self, subject: str) -> tuple[SubjectSettings, list[str]]:
        """The subject's settings, and why this registry cannot keep some. The global mode is not read: a registry is
        often read-only while it is copied.
        """
        own = (subject,) if subject else ()
        config = self._get_or("config", *own, missing={})
        mode = self._get_or("mode", *own, missing={}).get("mode") if subject else None
        level = config.get("compatibilityLevel") or config.get("compatibility")
        name = f"subject {subject}" if subject else "the registry"
        refused = [f"The {key} of {name} is not supported." for key in _further(config)]
        if level is not None and level not in Level.__members__:
            refused.append(f"The compatibility level {level} of {name} is not supported.")
            level = None
        if mode not in (None, *_MODES):
            refused.append(f"The mode {mode} of {name} is not copied.")
            mode = None
        return SubjectSettings(subject, level, config.get("normalize"), mode), refused

    def _get(self, *path: str, **query: str) -> Any:  # noqa: ANN401 - JSON
        answer = self._transport.ask("GET", path, query=query)
        try:
            return json.loads(answer)
        except ValueError as error:
            raise self._transport.not_understood("GET", path, str(error)) from error

    def _get_or(self, *path: str, missing: Any) -> Any:  # noqa: ANN401 - JSON
        """The answer, or `missing` where there is nothing."""
        try:
            return self._get(*path)
        except RegistryRequestError as error:
            if error.status != _MISSING:
                raise
            return missing


def _name_problem(subject: str) -> str | None:
    if subject.startswith((":.", ":*:")):
        return f"The subject {subject} is in a context, and this registry has only the default one."
    if not subject.strip() or len(subject) > SUBJECT_LENGTH or not subject.isprintable():
        return f"The subject {subject!r} is not a valid name here."
    return None


def _schema_problem(found: dict[str, Any]) -> str | None:
    kind = found.get("schemaType") or "AVRO"
    if kind != "AVRO":
        return f"has the type {kind}, and this registry keeps AVRO"
    further = [name for key, name in _NOT_KEPT_OF_SCHEMA.items() if found.get(key)]
    if further:
        return f"has {' and '.join(further)}, which this registry does not keep"
    if not 0 < found["id"] <= LARGEST_INT:
        return f"has the id {found['id']}, which is none of this registry's"
    return None


def _further(config: dict[str, Any]) -> Iterable[str]:
    return sorted(key for key, value in config.items() if value and key not in _KEPT_OF_CONFIG)

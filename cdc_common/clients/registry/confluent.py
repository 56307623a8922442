"""A client of Confluent's API, which cassandra-schematizer and other schema registries have."""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from cachetools import LRUCache

from cdc_common.clients.registry.errors import SCHEMA_NOT_FOUND, RegistryRequestError
from cdc_common.clients.registry.transport import ANSWER_SECONDS, Transport
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.settings import RegistrySettings

_Answer = TypeVar("_Answer", list[Any], dict[str, Any])
_SUBJECT_NOT_FOUND = "40401"
_GONE = (_SUBJECT_NOT_FOUND, "40402", "40404", "40406")
_PAGE = 1_000
_MOST_CACHED = 1_000
_HEADERS = {
    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
    "Content-Type": "application/vnd.schemaregistry.v1+json",
}


class RegisteredVersion(NamedTuple):
    """A version of a subject."""

    # The subject's name.
    subject: str
    # The number of the version.
    version: int
    # The schema's id.
    schema_id: int
    # The schema, as the registry answers it.
    text: str


class RegistryClient:
    """Registers and looks up Avro schemas as JSON dicts. An id never changes its schema.

    CdcError: REGISTRY_UNREACHABLE if the registry does not answer or has failed (worth a retry), REGISTRY_REFUSED with
    its message if it refuses. Several threads may use one client.
    """

    def __init__(self, settings: RegistrySettings, timeout: float = ANSWER_SECONDS) -> None:
        """`timeout`: of one attempt, in seconds. CdcError CONFIG_INVALID if a file of the settings cannot be used."""
        self._transport = Transport.of_settings(settings, headers=_HEADERS, timeout=timeout)
        self._texts: LRUCache[int, str] = LRUCache(_MOST_CACHED)
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def check_reachable(self) -> None:
        """Returns if a registry answers."""
        self._ask(list, "GET", "subjects")

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """The id of the schema, now a version of the subject; IncompatibleSchemaError."""
        return self._id("POST", ("subjects", subject, "versions"), _body(schema))

    def register_text(self, subject: str, text: str) -> int:
        """Register a schema that is JSON already."""
        return self._id("POST", ("subjects", subject, "versions"), {"schema": text})

    def has(self, subject: str) -> bool:
        """Whether the subject has a schema."""
        return bool(self._versions(subject))

    def list_subjects(self, prefix: str) -> set[str]:
        """The subjects whose names begin with `prefix`; a registry that does not know this limit sends all."""
        subjects = self._ask(list, "GET", "subjects", subjectPrefix=prefix)
        return {subject for subject in subjects if isinstance(subject, str) and subject.startswith(prefix)}

    def lookup(self, subject: str, schema: dict[str, Any]) -> int | None:
        """The id of the schema if it is registered under the subject."""
        try:
            return self._id("POST", ("subjects", subject), _body(schema))
        except RegistryRequestError as error:
            if error.word in (_SUBJECT_NOT_FOUND, SCHEMA_NOT_FOUND):
                return None
            raise

    def latest(self, subject: str) -> tuple[int, dict[str, Any]] | None:
        """The id and the schema of the subject's newest version; None if it has none."""
        path = ("subjects", subject, "versions", "latest")
        try:
            found = self._ask(dict, "GET", *path)
        except RegistryRequestError as error:
            if error.word == _SUBJECT_NOT_FOUND:
                return None
            raise
        if not isinstance(found.get("id"), int):
            raise self._transport.not_understood("GET", path, "the answer has no id")
        return found["id"], json.loads(self._avro_text(found, path, subject))

    def every_version(self, prefix: str) -> Iterator[RegisteredVersion]:
        """Yield all versions of subjects whose names begin with `prefix`, with their schemas. A request for _PAGE."""
        offset = 0
        while True:
            path = ("schemas",)
            query = {"subjectPrefix": prefix, "offset": str(offset), "limit": str(_PAGE)}
            found = self._ask(list, "GET", *path, **query)
            try:
                yield from (RegisteredVersion(v["subject"], v["version"], v["id"], v["schema"]) for v in found)
            except (KeyError, TypeError) as error:
                raise self._transport.not_understood("GET", path, "a version lacks a part") from error
            if len(found) < _PAGE:
                return
            offset += len(found)

    def delete_version(self, subject: str, version: int) -> None:
        """Delete a version softly: its schema stays readable by its id. Nothing happens if it is gone."""
        path = ("subjects", subject, "versions", str(version))
        try:
            self._transport.ask("DELETE", path)
        except RegistryRequestError as error:
            if error.word not in _GONE:
                raise

    def get(self, schema_id: int) -> dict[str, Any]:
        """The schema with this id. Asked for once."""
        with self._lock:
            text = self._texts.get(schema_id)
        if text is None:
            path = ("schemas", "ids", str(schema_id))
            text = self._avro_text(self._ask(dict, "GET", *path), path, f"the id {schema_id}")
            with self._lock:
                self._texts[schema_id] = text
        schema: dict[str, Any] = json.loads(text)
        return schema

    def versions(self, schema_id: int) -> dict[str, int]:
        """By subject, the newest version that has or had the schema; none if the registry does not know the id."""
        path = ("schemas", "ids", str(schema_id), "versions")
        found: dict[str, int] = {}
        try:
            for version in self._ask(list, "GET", *path, deleted="true"):
                found[version["subject"]] = max(version["version"], found.get(version["subject"], 0))
        except RegistryRequestError as error:
            if error.word != SCHEMA_NOT_FOUND:
                raise
        except (KeyError, TypeError) as error:
            raise self._transport.not_understood("GET", path, "a version has no subject or number") from error
        return found

    def _versions(self, subject: str) -> list[Any]:
        try:
            return self._ask(list, "GET", "subjects", subject, "versions")
        except RegistryRequestError as error:
            if error.word == _SUBJECT_NOT_FOUND:
                return []
            raise

    def _id(self, method: str, path: tuple[str, ...], body: object) -> int:
        answer = self._parsed(dict, method, path, self._transport.ask(method, path, body=body))
        found = answer.get("id")
        if not isinstance(found, int):
            raise self._transport.not_understood(method, path, "the answer has no id")
        return found

    def _ask(self, kind: type[_Answer], method: str, *path: str, **query: str) -> _Answer:
        return self._parsed(kind, method, path, self._transport.ask(method, path, query=query))

    def _parsed(self, kind: type[_Answer], method: str, path: tuple[str, ...], content: bytes) -> _Answer:
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise self._transport.not_understood(method, path, "the answer is not JSON") from error
        if not isinstance(answer, kind):
            raise self._transport.not_understood(method, path, f"the answer is not of type {kind.__name__}")
        return answer

    def _avro_text(self, answer: dict[str, Any], path: tuple[str, ...], of: str) -> str:
        """Return the schema of an answer. CdcError(REGISTRY_REFUSED) for a schema that is not Avro."""
        if answer.get("schemaType") not in (None, "", "AVRO"):
            raise CdcError(
                Code.REGISTRY_REFUSED,
                f"The schema of {of} is {answer['schemaType']}, not Avro.",
                "Only messages with Avro schemas can be read: use another topic, or find out who has sent it there.",
            )
        if not isinstance(answer.get("schema"), str):
            raise self._transport.not_understood("GET", path, "the answer has no schema")
        text: str = answer["schema"]
        return text


def _body(schema: dict[str, Any]) -> dict[str, str]:
    return {"schema": json.dumps(schema, ensure_ascii=False, separators=(",", ":"))}

"""A client of a schema registry with Confluent's API: cassandra-schematizer or another."""

from __future__ import annotations

import importlib
import importlib.util
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from cdc_common.clients.registry_connection import check_certificates
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.settings import RegistrySettings

_SUBJECT_NOT_FOUND = 40401
_SCHEMA_NOT_FOUND = 40403
_INCOMPATIBLE = 409
_RETRIES = 2
_RETRY_WAIT_MS = 200


class IncompatibleSchemaError(CdcError):
    """REGISTRY_REFUSED: the subject's compatibility level does not allow the schema."""


class RegistryClient:
    """Registers and looks up Avro schemas as JSON dicts. An id never changes its schema.

    CdcError: REGISTRY_UNREACHABLE if the registry does not answer or has failed (worth a retry), REGISTRY_REFUSED with
    its message if it refuses. Several threads may use one client.
    """

    def __init__(self, settings: RegistrySettings, timeout: float = 10.0) -> None:
        """`timeout`: of one request, in seconds. A failed request is retried twice. CdcError CONFIG_INVALID if a file
        of the settings cannot be used.
        """
        self._url = mask_url(settings.url)
        check_certificates(settings)
        self._client = SchemaRegistryClient(_client_config(settings, timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def check_reachable(self) -> None:
        """Returns if a registry answers."""
        with self._errors("list its subjects"):
            self._client.get_subjects()

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """The id of the schema, now a version of the subject; IncompatibleSchemaError."""
        with self._errors(f"register a schema under {subject}"):
            return _id(self._client.register_schema(subject, _avro(schema)))

    def has(self, subject: str) -> bool:
        """Whether the subject has a schema."""
        with self._errors(f"list the versions of {subject}"):
            try:
                return bool(self._client.get_versions(subject))
            except SchemaRegistryError as error:
                if error.error_code == _SUBJECT_NOT_FOUND:
                    return False
                raise

    def lookup(self, subject: str, schema: dict[str, Any]) -> int | None:
        """The id of the schema if it is registered under the subject."""
        with self._errors(f"look up a schema of {subject}"):
            try:
                return _id(self._client.lookup_schema(subject, _avro(schema)).schema_id)
            except SchemaRegistryError as error:
                if error.error_code in (_SUBJECT_NOT_FOUND, _SCHEMA_NOT_FOUND):
                    return None
                raise

    def latest(self, subject: str) -> tuple[int, dict[str, Any]] | None:
        """The id and the schema of the subject's newest version; None if it has none."""
        with self._errors(f"read the newest schema of {subject}"):
            try:
                newest = max(self._client.get_versions(subject))  # the client never asks again for the latest one
                found = self._client.get_version(subject, newest)
            except SchemaRegistryError as error:
                if error.error_code == _SUBJECT_NOT_FOUND:
                    return None
                raise
            return _id(found.schema_id), _json(found.schema, subject)

    def get(self, schema_id: int) -> dict[str, Any]:
        """The schema with this id."""
        with self._errors(f"get schema {schema_id}"):
            return _json(self._client.get_schema(schema_id), f"the id {schema_id}")

    def versions(self, schema_id: int) -> dict[str, int]:
        """By subject, the newest version that has or had the schema; none if the registry does not know the id."""
        found: dict[str, int] = {}
        with self._errors(f"list the versions of the schema {schema_id}"):
            try:
                every = self._client.get_schema_versions(schema_id, deleted=True)
            except SchemaRegistryError as error:
                if error.error_code == _SCHEMA_NOT_FOUND:
                    return found
                raise
        for each in every:
            subject, version = each.subject or "", each.version or 0
            found[subject] = max(version, found.get(subject, 0))
        return found

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except SchemaRegistryError as error:
            raise self._refusal(error, doing) from error
        except (ValueError, TypeError, AttributeError) as error:
            # confluent_kafka cannot parse the answer.
            raise CdcError(
                Code.REGISTRY_REFUSED,
                f"The server at {self._url} is not a schema registry: cannot {doing}.",
                "Set registry.url to the root of a registry with Confluent's API.",
            ) from error
        except _transport_errors() as error:
            raise CdcError(
                Code.REGISTRY_UNREACHABLE,
                f"The schema registry at {self._url} does not answer: cannot {doing}: "
                f"{str(error) or type(error).__name__}.",
                "Start it (cassandra-schematizer serve), or correct registry.url.",
            ) from error

    def _refusal(self, error: SchemaRegistryError, doing: str) -> CdcError:
        status = error.http_status_code
        reason = f"HTTP {status}, {error.error_code}: {error.error_message}"
        if status in (408, 429) or status >= 500:
            return CdcError(
                Code.REGISTRY_UNREACHABLE,
                f"The schema registry at {self._url} failed: cannot {doing}: {reason}.",
                "See the registry's own log, and try again once it works.",
            )
        if status in (401, 403):
            fix = "Correct registry.username and registry.password, or grant that user the permission."
        elif _INCOMPATIBLE in (error.error_code, status):
            fix = "Compare the schema with the subject's versions, or set another compatibility level for the subject."
        else:
            fix = "Check that registry.url is a registry with Confluent's API. If it is, see its message."
        kind = IncompatibleSchemaError if _INCOMPATIBLE in (error.error_code, status) else CdcError
        return kind(Code.REGISTRY_REFUSED, f"The schema registry at {self._url} refuses to {doing}: {reason}.", fix)


def _client_config(settings: RegistrySettings, timeout: float) -> dict[str, Any]:
    config: dict[str, Any] = {
        "url": settings.url,
        "timeout": timeout,
        "max.retries": _RETRIES,
        "retries.wait.ms": _RETRY_WAIT_MS,
        "retries.max.wait.ms": _RETRY_WAIT_MS * 4,
    }
    if settings.username:
        config["basic.auth.user.info"] = f"{settings.username}:{settings.password.get_secret_value()}"
    if settings.ssl_ca_file is not None:
        config["ssl.ca.location"] = str(settings.ssl_ca_file)
    if settings.ssl_identity_file is not None:
        config["ssl.certificate.location"] = str(settings.ssl_identity_file)
    return config


def _id(answered: object) -> int:
    if not isinstance(answered, int):
        raise TypeError("the answer has no id")
    return answered


def _json(schema: Schema, of: str) -> dict[str, Any]:
    """Return the schema's JSON. CdcError(REGISTRY_REFUSED) for a schema that is not Avro."""
    if schema.schema_type not in (None, "", "AVRO"):
        raise CdcError(
            Code.REGISTRY_REFUSED,
            f"The schema of {of} is {schema.schema_type}, not Avro.",
            "Only messages with Avro schemas can be read: use another topic, or find out who has sent it there.",
        )
    parsed: dict[str, Any] = json.loads(schema.schema_str or "")
    return parsed


def _avro(schema: dict[str, Any]) -> Schema:
    return Schema(json.dumps(schema, ensure_ascii=False, separators=(",", ":")), "AVRO")


def _transport_errors() -> tuple[type[Exception], ...]:
    """The errors that confluent_kafka passes on without an HTTP answer: those of httpx, or of its successor."""
    names = [name for name in ("httpx", "httpx2") if importlib.util.find_spec(name)]
    return (OSError, *(importlib.import_module(name).HTTPError for name in names))

"""Asks cassandra-schematizer for the topic of a schema. Other registries with Confluent's API cannot answer that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import quote

import httpx

from cdc_common.clients.registry_connection import registry_login, registry_tls
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_url

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings

_RETRIES = 2  # of connecting
_PATH = "/api/v1"
_ASSIGNED = ("change", "other")  # kinds; raw and dead-letter topics belong to the source too
_NOT_FOUND = 404
_MISSING = "not-found"
_FAILED = (408, 429)
_UNAUTHORISED = (401, 403)


class AssignedTopic(NamedTuple):
    """A topic, and the ids of the key's and the value's schema in it."""

    name: str
    key_schema_id: int
    value_schema_id: int


class _Refusal(NamedTuple):
    """An answer that is an error; `word` is the registry's name for it, empty if another program has answered."""

    status: int
    word: str
    reason: str
    fix: str

    @classmethod
    def of(cls, response: httpx.Response) -> _Refusal:
        status = response.status_code
        try:
            answer = response.json()
            return cls(status, str(answer["error"]), str(answer["message"]), str(answer["fix"]))
        except (ValueError, KeyError, TypeError):
            return cls(status, "", f"HTTP {status}.", "See the registry's own log.")


class TopicAssigner:
    """CdcError: REGISTRY_UNREACHABLE if the registry does not answer or has failed (worth a retry), REGISTRY_REFUSED
    with its message if it refuses. Several threads may use one.
    """

    def __init__(self, settings: RegistrySettings, timeout: float = 10.0) -> None:
        """`timeout`: of one request, in seconds."""
        self._url = mask_url(settings.url)
        self._client = httpx.Client(
            base_url=settings.url,
            timeout=timeout,
            auth=registry_login(settings),
            transport=httpx.HTTPTransport(verify=registry_tls(settings), retries=_RETRIES),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def check(self) -> None:
        """Raise CdcError(REGISTRY_REFUSED) if the registry assigns no topics."""
        self._ask("GET", ("me",))

    def assign(self, namespace: str, source: str, key: dict[str, Any], value: dict[str, Any]) -> AssignedTopic:
        """Register the schemas of a source. The same schemas get the same topic, unless what is said of the source has
        changed, such as which of its fields are personal.
        """
        body = {"format": "avro", "text": _text(value), "key": _text(key), "source": source}
        made = self._ask("POST", ("namespaces", namespace, "schemas"), body)
        try:
            return AssignedTopic(str(made["topic"]), int(made["key_schema_id"]), int(made["schema_id"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._no_assignment() from error

    def topics(self, namespace: str, source: str) -> list[str]:
        """The source's topics that schemas are assigned to, the oldest first; none for an unknown source."""
        found = self._ask("GET", ("namespaces", namespace, "sources", source, "topics"), missing=[])
        try:
            return [str(each["name"]) for each in found if each["kind"] in _ASSIGNED]
        except (KeyError, TypeError) as error:
            raise self._no_assignment() from error

    def disable(self, topic: str) -> None:
        """No schema is assigned to the topic from now on."""
        self._ask("PUT", ("topics", topic, "status"), {"status": "disabled"})

    def _ask(self, method: str, path: tuple[str, ...], body: object = None, missing: object = None) -> Any:  # noqa: ANN401 - JSON
        url = _PATH + "".join(f"/{quote(part, safe='')}" for part in path)
        try:
            response = self._client.request(method, url, json=body)
        except httpx.HTTPError as error:
            raise CdcError(
                Code.REGISTRY_UNREACHABLE,
                f"The schema registry at {self._url} does not answer: {method} {url}: "
                f"{str(error) or type(error).__name__}.",
                "Start it (cassandra-schematizer serve), or correct registry.url.",
            ) from error
        if not response.is_success:
            refusal = _Refusal.of(response)
            if refusal.word == _MISSING and missing is not None:
                return missing
            raise self._error(f"{method} {url}", refusal)
        try:
            return response.json()
        except ValueError as error:
            raise self._no_assignment() from error

    def _error(self, doing: str, refusal: _Refusal) -> CdcError:
        if refusal.status in _FAILED or refusal.status >= 500:
            return CdcError(
                Code.REGISTRY_UNREACHABLE,
                f"The schema registry at {self._url} failed: {doing}: {refusal.reason}",
                "See the registry's own log, and try again once it works.",
            )
        if refusal.status == _NOT_FOUND and refusal.word in ("", "http"):  # no such path
            return self._no_assignment()
        fix = refusal.fix
        if refusal.status in _UNAUTHORISED:
            fix = "Correct registry.username and registry.password, or grant that user the role writer."
        problem = f"The schema registry at {self._url} refuses: {doing}: {refusal.reason}"
        return CdcError(Code.REGISTRY_REFUSED, problem, fix)

    def _no_assignment(self) -> CdcError:
        return CdcError(
            Code.REGISTRY_REFUSED,
            f"The schema registry at {self._url} assigns no topics: it has no {_PATH} as cassandra-schematizer has.",
            "Set materializer.topics to template, or registry.url to a cassandra-schematizer.",
        )


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))

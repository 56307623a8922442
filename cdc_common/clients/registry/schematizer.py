"""A client of the catalogue's REST interface, which cassandra-schematizer alone has: typed and caching."""

from __future__ import annotations

import json
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cachetools import LRUCache, TTLCache
from pydantic import TypeAdapter, ValidationError

from cdc_common.clients.registry.connection import registry_login, registry_tls
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.kinds import ASSIGNED_KINDS, Status
from cdc_common.clients.registry.transport import ANSWER_SECONDS, ATTEMPTS, Transport
from cdc_common.clients.registry.views import (
    Compatibility,
    Consumer,
    ConsumerGroup,
    DataTarget,
    Element,
    FollowedTopics,
    Lease,
    Lineage,
    Managed,
    ManagedSince,
    Namespace,
    Producer,
    Registration,
    Schema,
    Source,
    SourceDocumentation,
    Topic,
    TopicSchema,
    Unused,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from types import TracebackType

    from cdc_common.settings import RegistrySettings

_NAMESPACES, _SOURCES, _TOPICS = (
    TypeAdapter(list[Namespace]),
    TypeAdapter(list[Source]),
    TypeAdapter(list[Topic]),
)
_SCHEMA, _TOPIC, _TOPIC_SCHEMAS = TypeAdapter(Schema), TypeAdapter(Topic), TypeAdapter(list[TopicSchema])
_TOPIC_SCHEMA, _ELEMENTS, _FOLLOWED = TypeAdapter(TopicSchema), TypeAdapter(list[Element]), TypeAdapter(FollowedTopics)
_REGISTRATION, _COMPATIBILITY = TypeAdapter(Registration), TypeAdapter(Compatibility)
_PRODUCER, _CONSUMER, _TEXTS = TypeAdapter(Producer), TypeAdapter(Consumer), TypeAdapter(list[str])
_SOURCE = TypeAdapter(Source)
_MANAGED_OF = TypeAdapter(dict[str, ManagedSince])
_DOCUMENTATION_OF = TypeAdapter(dict[str, SourceDocumentation])
_DOCUMENTATION, _UNUSED = TypeAdapter(SourceDocumentation), TypeAdapter(list[Unused])
_PRODUCERS, _CONSUMERS = TypeAdapter(list[Producer]), TypeAdapter(list[Consumer])
_LINEAGE, _LEASE, _MANAGED = TypeAdapter(Lineage), TypeAdapter(Lease), TypeAdapter(list[ManagedSince])
_DATA_TARGET, _CONSUMER_GROUP = TypeAdapter(DataTarget), TypeAdapter(ConsumerGroup)
_MOST_CACHED = 10_000
_CACHE_SECONDS = 30.0
_PATH = ("api", "v1")
_T = TypeVar("_T")
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass(frozen=True, slots=True)
class TopicsChange:
    """The topics that a data target reads now, and those that came and went since the last question."""

    # The cursor to keep for the next question.
    cursor: int
    # All topics that it reads now.
    topics: list[Topic]
    # The names of the topics that came.
    added: list[str]
    # The names of the topics that went.
    removed: list[str]


class SchematizerClient:
    """Several threads may use one. RegistryRequestError if the service refuses, or does not answer after all attempts.

    Texts of schemas are cached forever, as an id never changes its schema; topics of a source and latest schemas for
    `cache_seconds`.
    """

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        url: str,
        *,
        login: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = ANSWER_SECONDS,
        attempts: int = ATTEMPTS,
        cache_seconds: float = _CACHE_SECONDS,
    ) -> None:
        """`url`: the root of the service. `login`: user (or id of an API key) and password. `headers`: sent with each
        request, such as a token. `tls`: for authorities or a certificate of one's own. `timeout`: of one attempt (s).
        """
        self._transport = Transport(url, login=login, headers=headers, tls=tls, timeout=timeout, attempts=attempts)
        self._texts: LRUCache[int, str] = LRUCache(_MOST_CACHED)
        self._recent: TTLCache[Any, Any] = TTLCache(_MOST_CACHED, cache_seconds)
        self._lock = Lock()

    @classmethod
    def of_settings(cls, settings: RegistrySettings, *, cache_seconds: float = _CACHE_SECONDS) -> Self:
        """Return the client of `[registry]`. CdcError CONFIG_INVALID if a file of the settings cannot be used."""
        login, tls = registry_login(settings), registry_tls(settings)
        return cls(settings.url, login=login, tls=tls, cache_seconds=cache_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def check_reachable(self) -> None:
        """Return if cassandra-schematizer answers. Of another registry, the error says `lacks_request`."""
        self._get(_ANYTHING, "me")

    def namespaces(self) -> list[Namespace]:
        return self._get(_NAMESPACES, "namespaces")

    def sources(self, namespace: str) -> list[Source]:
        return self._get(_SOURCES, "namespaces", namespace, "sources")

    def topic(self, name: str) -> Topic:
        return self._get(_TOPIC, "topics", name)

    def topics(
        self,
        *,
        namespace: str | None = None,
        source: str | None = None,
        data_target: str | None = None,
        schema_id: int | None = None,
        created_since: datetime | None = None,
    ) -> list[Topic]:
        """The oldest first; not cached."""
        since = created_since.isoformat() if created_since else None
        return self._get(
            _TOPICS,
            "topics",
            namespace=namespace,
            source=source,
            data_target=data_target,
            schema_id=schema_id,
            created_since=since,
        )

    def topics_of_source(self, namespace: str, source: str, *, is_fresh: bool = False) -> list[Topic]:
        """The oldest first. Cached for a while, unless it must be fresh."""
        key = ("topics", namespace, source)
        found: list[Topic] | None = None if is_fresh else self._cached(self._recent, key)
        if found is None:
            found = self._get(_TOPICS, "namespaces", namespace, "sources", source, "topics")
            self._keep(self._recent, key, found)
        return found

    def assigned_topics(self, namespace: str, source: str, *, is_fresh: bool = False) -> list[Topic]:
        """The topics of a source that schemas are assigned to, the oldest first; none if the source is not known."""
        try:
            found = self.topics_of_source(namespace, source, is_fresh=is_fresh)
        except RegistryRequestError as error:
            if error.is_not_found:
                return []
            raise
        return [topic for topic in found if topic.kind in ASSIGNED_KINDS]

    def schema(self, schema_id: int) -> Schema:
        """Return a schema with its topics. It is not cached."""
        return self._get(_SCHEMA, "schemas", str(schema_id))

    def schema_text(self, schema_id: int) -> str:
        """Canonical JSON. Asked for once."""
        found: str | None = self._cached(self._texts, schema_id)
        if found is None:
            found = self.schema(schema_id).text
            self._keep(self._texts, schema_id, found)
        return found

    def schemas(self, topic: str) -> list[TopicSchema]:
        return self._get(_TOPIC_SCHEMAS, "topics", topic, "schemas")

    def latest_schema(self, topic: str) -> TopicSchema:
        """The newest of the values that is not disabled. Cached for a while."""
        key = ("latest", topic)
        found: TopicSchema | None = self._cached(self._recent, key)
        if found is None:
            found = self._get(_TOPIC_SCHEMA, "topics", topic, "schemas", "latest")
            self._keep(self._recent, key, found)
        return found

    def elements(self, schema_id: int, topic: str | None = None) -> list[Element]:
        """The fields of a schema, with the documentation of the topic's source: by default of the first topic that has
        the schema, which several topics may share.
        """
        return self._get(_ELEMENTS, "schemas", str(schema_id), "elements", topic=topic)

    def register(  # noqa: PLR0913 - what a description is made of
        self,
        namespace: str,
        format: str,  # noqa: A002 - the service's word
        text: str | Mapping[str, Any],
        *,
        source: str | None = None,
        key: str | Mapping[str, Any] | None = None,
        owner: str | None = None,
        doc: str | None = None,
        fields: Mapping[str, Mapping[str, object]] | None = None,
    ) -> Registration:
        """Register a schema. Idempotent. `text`, `key`: texts, or JSON as Python's values. `fields`: by path, with
        `doc`, `owner`, `pii`.
        """
        body = {"format": format, "text": _text(text), "source": source, "owner": owner, "doc": doc}
        body["key"] = None if key is None else _text(key)
        body["fields"] = {path: dict(said) for path, said in (fields or {}).items()}  # type: ignore[assignment] # JSON
        made = self._send(_REGISTRATION, "POST", ("namespaces", namespace, "schemas"), body)
        self._forget(("topics", made.namespace, made.source), ("latest", made.topic))
        return made

    def check(
        self,
        namespace: str,
        format: str,  # noqa: A002 - the service's word
        text: str,
        *,
        source: str | None = None,
        key: str | None = None,
    ) -> Compatibility:
        """Ask for the decision about a schema; nothing is registered."""
        body = {"format": format, "text": text, "source": source, "key": key}
        return self._send(_COMPATIBILITY, "POST", ("namespaces", namespace, "compatibility"), body)

    def put_data_target(
        self, name: str, kind: str, destination: str, *, owner: str | None = None, doc: str | None = None
    ) -> DataTarget:
        """Makes it, or changes the one that exists."""
        body = {"kind": kind, "destination": destination, "owner": owner, "doc": doc}
        return self._send(_DATA_TARGET, "PUT", ("data-targets", name), body)

    def put_consumer_group(
        self, data_target: str, group: str, reads: Iterable[tuple[str, str | None]]
    ) -> ConsumerGroup:
        """Sets what a group of the data target reads: (namespace, source), None for all sources of the namespace."""
        sources = [{"namespace": namespace, "source": source} for namespace, source in reads]
        path = ("data-targets", data_target, "consumer-groups", group)
        return self._send(_CONSUMER_GROUP, "PUT", path, {"data_sources": sources})

    def topics_change(self, data_target: str, last: TopicsChange | None = None) -> TopicsChange:
        """Ask for the topics that a data target reads now, compared with the last answer."""
        cursor = last.cursor if last else 0
        now = self._get(_FOLLOWED, "data-targets", data_target, "topics", cursor=cursor)
        before = {topic.name for topic in last.topics} if last else set()
        names = {topic.name for topic in now.topics}
        return TopicsChange(now.cursor, now.topics, sorted(names - before), sorted(before - names))

    def register_producer(
        self, team: str, service: str, topic: str, schema_id: int, expected_frequency_seconds: int
    ) -> Producer:
        """Register a producer. Call it again at least every `expected_frequency_seconds`: each call counts as being
        seen.
        """
        body = {"team": team, "service": service, "topic": topic, "schema_id": schema_id}
        body["expected_frequency_seconds"] = expected_frequency_seconds
        return self._send(_PRODUCER, "POST", ("producers",), body)

    def register_consumer(
        self, team: str, service: str, topic: str, consumer_group: str, expected_frequency_seconds: int
    ) -> Consumer:
        """Register a consumer. Call it again at least every `expected_frequency_seconds`: each call counts as being
        seen.
        """
        body = {"team": team, "service": service, "topic": topic, "consumer_group": consumer_group}
        return self._send(
            _CONSUMER, "POST", ("consumers",), {**body, "expected_frequency_seconds": expected_frequency_seconds}
        )

    def producers(self) -> list[Producer]:
        """Return the registered producers of all topics."""
        return self._get(_PRODUCERS, "producers")

    def consumers(self) -> list[Consumer]:
        """Return the registered consumers of all topics."""
        return self._get(_CONSUMERS, "consumers")

    def remove_producer(self, topic: str, service: str) -> None:
        """Forget a service as producer of a topic. Idempotent."""
        self._ask(_ANYTHING, "DELETE", ("producers",), {"topic": topic, "service": service}, None)

    def remove_consumer(self, topic: str, service: str, group: str) -> None:
        """Forget a service as consumer of a topic with a group. Idempotent."""
        query = {"topic": topic, "service": service, "consumer_group": group}
        self._ask(_ANYTHING, "DELETE", ("consumers",), query, None)

    def documentation(self, namespace: str, source: str) -> SourceDocumentation:
        return self._get(_DOCUMENTATION, "namespaces", namespace, "sources", source, "documentation")

    def documentation_of(self, namespace: str) -> dict[str, SourceDocumentation]:
        """The documentation of all sources of a namespace, by source."""
        return self._get(_DOCUMENTATION_OF, "namespaces", namespace, "documentation")

    def source_elements(self, namespace: str, source: str) -> list[Element]:
        """The elements of the source's newest enabled schema."""
        return self._get(_ELEMENTS, "namespaces", namespace, "sources", source, "elements")

    def lineage(self, namespace: str, source: str) -> Lineage:
        """Return the stages that a source's rows pass, in order from the table to the consumers."""
        return self._get(_LINEAGE, "namespaces", namespace, "sources", source, "lineage")

    def document(self, namespace: str, source: str, said: SourceDocumentation) -> list[str]:
        """Sets all of a source's documentation. Returns the paths that its newest schema does not have."""
        path = ("namespaces", namespace, "sources", source, "documentation")
        return self._send(_TEXTS, "PUT", path, said.model_dump(mode="json"))

    def deprecate(self, namespace: str, source: str, reason: str, successor: str | None = None) -> Source:
        """Say why a source should no longer be read, and which one instead, as NAMESPACE/SOURCE."""
        path = ("namespaces", namespace, "sources", source, "deprecation")
        return self._send(_SOURCE, "PUT", path, {"reason": reason, "successor": successor})

    def lease(self, deployment: str, holder: str, seconds: int, *, token: int | None = None) -> Lease:
        """Take the right to apply the files of a deployment, or renew it with its token. RegistryRequestError with
        `is_conflict` if another holder has it.
        """
        body = {"holder": holder, "seconds": seconds, "token": token}
        return self._send(_LEASE, "PUT", ("deployments", deployment, "lease"), body)

    def release(self, deployment: str, token: int) -> None:
        """Give the right back."""
        self._ask(_ANYTHING, "DELETE", ("deployments", deployment, "lease"), {"token": token}, None)

    def managed(self, deployment: str, kind: str | None = None) -> list[ManagedSince]:
        """Return what was made from the files of a deployment: of one kind, or all."""
        return self._get(_MANAGED, "deployments", deployment, "managed", kind=kind)

    def documentation_files(self, namespace: str) -> dict[str, ManagedSince]:
        """Return the notes about topic files that document sources of a namespace, by source."""
        return self._get(_MANAGED_OF, "namespaces", namespace, "documentation-files")

    def change_managed(
        self, deployment: str, token: int, put: Iterable[Managed], remove: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Note what was made or changed, and what is no longer managed: (kind, name)."""
        body = {
            "token": token,
            "put": [thing.model_dump(mode="json") for thing in put],
            "remove": [{"kind": kind, "name": name} for kind, name in remove],
        }
        self._send(_ANYTHING, "POST", ("deployments", deployment, "managed"), body)

    def plan(self, planner: str, table: str, schema_id: int, from_schema_id: int | None = None) -> list[str]:
        """Statements that make a warehouse's table, or lead it from one schema to another."""
        return self._get(_TEXTS, "plans", planner, table=table, schema_id=schema_id, from_schema_id=from_schema_id)

    def unused(self, days: int) -> list[Unused]:
        return self._get(_UNUSED, "unused", days=days)

    def set_status(self, topic: str, status: Status, *, schema_id: int | None = None) -> None:
        """Set the status of a topic, or of a schema in it. No schema is assigned to a disabled topic."""
        schema = () if schema_id is None else ("schemas", str(schema_id))
        self._send(_ANYTHING, "PUT", ("topics", topic, *schema, "status"), {"status": status.value})

    def _get(self, answer: TypeAdapter[_T], *path: str, **query: Any) -> _T:  # noqa: ANN401 - what the query takes
        return self._ask(answer, "GET", path, query, None)

    def _send(self, answer: TypeAdapter[_T], method: str, path: tuple[str, ...], body: object) -> _T:
        return self._ask(answer, method, path, {}, body)

    def _ask(
        self, answer: TypeAdapter[_T], method: str, path: tuple[str, ...], query: Mapping[str, Any], body: object
    ) -> _T:
        content = self._transport.ask(method, (*_PATH, *path), query=query, body=body)
        try:
            return answer.validate_json(content)
        except ValidationError as error:
            raise self._transport.not_understood(method, (*_PATH, *path), str(error)) from error

    def _cached(self, cache: Any, key: object) -> Any:  # noqa: ANN401 - of several types
        with self._lock:
            return cache.get(key)

    def _keep(self, cache: Any, key: object, value: object) -> None:  # noqa: ANN401 - as above
        with self._lock:
            cache[key] = value

    def _forget(self, *keys: object) -> None:
        with self._lock:
            for key in keys:
                self._recent.pop(key, None)


def _text(schema: str | Mapping[str, Any]) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False, separators=(",", ":"))

"""What the schema registry knows: the topics of a source, their schemas, what is personal; and where a target goes."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from cdc_common.clients.registry import RegistryClient
from cdc_common.clients.registry_connection import registry_login, registry_tls
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_url
from schematizer.client import SchematizerClient, SchematizerError
from transformer.confluent import ConfluentCatalogue
from transformer.registered import Newest, Part, Registered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.settings import RegistrySettings
    from transformer.definition import Place, Transformer
    from transformer.derive import Derived

_ATTEMPTS = 2
_CACHE_SECONDS = 5.0
_NOT_OURS = (404, 405, 501)
_READ_KINDS = ("change", "other")


class Catalogue(Protocol):
    """CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED. Used by one thread.

    knows_personal: whether it can say which columns are personal.
    """

    @property
    def knows_personal(self) -> bool: ...

    def topics(self, place: Place) -> list[str]:
        """The topics of a source, the oldest first; none if it is not known."""
        ...

    def newest(self, topic: str) -> Newest | None:
        """None if the topic has no value schema."""
        ...

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        """The schema of an id, as JSON."""
        ...

    def version(self, topic: str, part: Part, schema_id: int) -> int | None:
        """A number that rises in the order in which the topic got its schemas; None if it is none of the topic's. Ids
        do not rise in that order: another topic may have had the schema before.
        """
        ...

    def personal(self, place: Place) -> frozenset[str]:
        """The columns of a source that are marked as personal, those of older schemas included."""
        ...

    def register(self, transformer: Transformer, derived: Derived) -> Registered:
        """Register the derived schemas. Idempotent."""
        ...

    def close(self) -> None: ...


def open_catalogue(settings: RegistrySettings) -> Catalogue:
    """The catalogue of the Schematizer, or of another registry with Confluent's API."""
    client = SchematizerClient(
        settings.url,
        login=registry_login(settings),
        tls=registry_tls(settings),
        attempts=_ATTEMPTS,
        cache_seconds=_CACHE_SECONDS,
    )
    try:
        with _errors(settings, "read its namespaces"):
            client.namespaces()
    except _NotOursError:
        client.close()
        return _open_confluent(settings)
    except CdcError:
        client.close()
        raise
    return SchematizerCatalogue(client, settings)


def _open_confluent(settings: RegistrySettings) -> ConfluentCatalogue:
    """Open Confluent's registry. CdcError if it is none, as a proxy is that answers for a registry which is away."""
    registry = RegistryClient(settings)
    try:
        registry.check_reachable()
    except CdcError:
        registry.close()
        raise
    return ConfluentCatalogue(registry)


class SchematizerCatalogue:
    """The Schematizer assigns the target's topic."""

    knows_personal = True

    def __init__(self, client: SchematizerClient, settings: RegistrySettings) -> None:
        self._client = client
        self._settings = settings

    def close(self) -> None:
        self._client.close()

    def topics(self, place: Place) -> list[str]:
        with self._errors(f"list the topics of {place}"):
            try:
                found = self._client.topics_of_source(place.namespace, place.source)
            except SchematizerError as error:
                if error.status == 404:
                    return []
                raise
        return [topic.name for topic in found if topic.kind.value in _READ_KINDS and topic.status.value != "disabled"]

    def newest(self, topic: str) -> Newest | None:
        with self._errors(f"read the schemas of {topic}"):
            try:
                value = self._client.latest_schema(topic)
            except SchematizerError as error:
                if error.status == 404:
                    return None
                raise
            keys = [each.schema_id for each in self._client.schemas(topic) if each.part.value == "key"]
            key = self.schema(keys[-1]) if keys else None
            return Newest(value.schema_id, key, self.schema(value.schema_id))

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        with self._errors(f"read the schema {schema_id}"):
            return json.loads(self._client.schema_text(schema_id))

    def version(self, topic: str, part: Part, schema_id: int) -> int | None:
        with self._errors(f"read the schemas of {topic}"):
            found = [each.schema_id for each in self._client.schemas(topic) if each.part.value == part]
        return found.index(schema_id) + 1 if schema_id in found else None

    def personal(self, place: Place) -> frozenset[str]:
        with self._errors(f"read the documentation of {place}"):
            said = self._client.documentation(place.namespace, place.source)
        return frozenset(_column(path) for path, field in said.fields.items() if field.pii)

    def register(self, transformer: Transformer, derived: Derived) -> Registered:
        target = transformer.target
        with self._errors(f"register the schemas of {target}"):
            made = self._client.register(
                target.namespace,
                "avro",
                json.dumps(derived.value_schema, ensure_ascii=False),
                source=target.source,
                key=None if derived.key_schema is None else json.dumps(derived.key_schema, ensure_ascii=False),
                owner=target.owner,
                doc=target.doc,
                fields={name: {"pii": True} for name in sorted(derived.pii)},
            )
        return Registered(made.topic, made.key_schema_id, made.schema_id)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        with _errors(self._settings, doing):
            yield


class _NotOursError(Exception):
    """The registry is not the Schematizer."""


@contextmanager
def _errors(settings: RegistrySettings, doing: str) -> Iterator[None]:
    url = mask_url(settings.url)
    try:
        yield
    except SchematizerError as error:
        if doing == "read its namespaces" and (error.status in _NOT_OURS or error.error == "not-understood"):
            raise _NotOursError from error
        if error.is_retried:
            raise CdcError(
                Code.REGISTRY_UNREACHABLE,
                f"The schema registry at {url} does not answer or has failed: cannot {doing}: {error}",
                "Start it (cassandra-schematizer serve), or correct registry.url.",
            ) from error
        raise CdcError(
            Code.REGISTRY_REFUSED,
            f"The schema registry at {url} refuses to {doing}: {error}",
            "Follow its message. For a login, see registry.username and registry.password.",
        ) from error


def _column(path: str) -> str:
    """The column that a path is in: its names are joined by dots, and items of lists and maps add [] and {}."""
    return path.partition(".")[0].partition("[")[0].partition("{")[0]

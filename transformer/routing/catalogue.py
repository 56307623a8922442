"""Asks the schema registry for the topics of a source, their schemas and personal columns, and for a target's topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.kinds import Status
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.errors.codes import CdcError
from transformer.routing.confluent import ConfluentCatalogue
from transformer.routing.registered import Newest, Part, Registered

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings
    from transformer.definition import CatalogueSource, Transformer
    from transformer.steps.derive import Derived

_CACHE_SECONDS = 5.0


class Catalogue(Protocol):
    """CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED. Used by one thread.

    knows_personal: whether it can say which columns are personal.
    """

    @property
    def knows_personal(self) -> bool: ...

    def topics(self, place: CatalogueSource) -> list[str]:
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

    def personal(self, place: CatalogueSource) -> frozenset[str]:
        """The columns of a source that are marked as personal, those of older schemas included."""
        ...

    def register(self, transformer: Transformer, derived: Derived) -> Registered:
        """Register the derived schemas. Idempotent."""
        ...

    def close(self) -> None: ...


def open_catalogue(settings: RegistrySettings) -> Catalogue:
    """The catalogue of the Schematizer, or of another registry with Confluent's API."""
    client = SchematizerClient.of_settings(settings, cache_seconds=_CACHE_SECONDS)
    try:
        client.namespaces()
    except RegistryRequestError as error:
        client.close()
        if error.lacks_request:
            return _open_confluent(settings)
        raise
    return SchematizerCatalogue(client)


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

    def __init__(self, client: SchematizerClient) -> None:
        self._client = client

    def close(self) -> None:
        self._client.close()

    def topics(self, place: CatalogueSource) -> list[str]:
        found = self._client.assigned_topics(place.namespace, place.source)
        return [topic.name for topic in found if topic.status is not Status.DISABLED]

    def newest(self, topic: str) -> Newest | None:
        try:
            value = self._client.latest_schema(topic)
        except RegistryRequestError as error:
            if error.is_not_found:
                return None
            raise
        keys = [schema.schema_id for schema in self._client.schemas(topic) if schema.part.value == "key"]
        key = self.schema(keys[-1]) if keys else None
        return Newest(value.schema_id, key, self.schema(value.schema_id))

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self._client.schema_text(schema_id))

    def version(self, topic: str, part: Part, schema_id: int) -> int | None:
        found = [schema.schema_id for schema in self._client.schemas(topic) if schema.part.value == part]
        return found.index(schema_id) + 1 if schema_id in found else None

    def personal(self, place: CatalogueSource) -> frozenset[str]:
        said = self._client.documentation(place.namespace, place.source)
        return frozenset(_column(path) for path, field in said.fields.items() if field.pii)

    def register(self, transformer: Transformer, derived: Derived) -> Registered:
        target = transformer.target
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


def _column(path: str) -> str:
    """The column that a path is in: its names are joined by dots, and items of lists and maps add [] and {}."""
    return path.partition(".")[0].partition("[")[0].partition("{")[0]

"""Asks the Schematizer for the schemas of inputs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.kinds import Status
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.errors.codes import CdcError, Code
from joinery.faults import several_topics
from joinery.planning.input_schema import InputSchema

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings
    from joinery.definition import CatalogueSource, Target

_CACHE_SECONDS = 5.0
_COLUMN = re.compile(r"[.\[{]")  # ends the name of a column in the path of a field


class Registered(NamedTuple):
    """The topic and the schema ids of a target."""

    # The topic that the registry has assigned.
    topic: str
    # The registry's id of the key schema.
    key_id: int
    # The registry's id of the value schema.
    value_id: int


class Catalogue(Protocol):
    """The schemas of inputs. CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED."""

    def input_schema(self, given: CatalogueSource, /) -> InputSchema | None:
        """The newest schemas of an input's topic; None if it has none yet. CdcError JOIN_INPUT for several topics."""
        ...

    def schema(self, schema_id: int, /) -> Any:  # noqa: ANN401 - JSON
        """The schema of an id, as JSON."""
        ...

    def register(self, target: Target, key: Any, value: Any, personal: frozenset[str], /) -> Registered:  # noqa: ANN401 - JSON
        """Register the schemas of joined rows. Idempotent."""
        ...

    def close(self) -> None: ...


def open_catalogue(settings: RegistrySettings) -> Catalogue:
    """The Schematizer's catalogue. CdcError REGISTRY_REFUSED for a registry that has none."""
    client = SchematizerClient.of_settings(settings, cache_seconds=_CACHE_SECONDS)
    try:
        client.namespaces()
    except RegistryRequestError as error:
        client.close()
        if error.lacks_request:
            raise CdcError(
                Code.REGISTRY_REFUSED,
                "The schema registry has no catalogue of sources: it is not a cassandra-schematizer.",
                "Use cassandra-schematizer: joins find their inputs in its catalogue.",
            ) from error
        raise
    return SchematizerCatalogue(client)


class SchematizerCatalogue:
    """Catalogue of a Schematizer."""

    def __init__(self, client: SchematizerClient) -> None:
        self._client = client

    def input_schema(self, given: CatalogueSource) -> InputSchema | None:
        assigned = self._client.assigned_topics(given.namespace, given.source)
        topics = [topic.name for topic in assigned if topic.status is not Status.DISABLED]
        if len(topics) > 1:
            raise several_topics(given, topics)
        if not topics:
            return None
        schemas = self._client.schemas(topics[0])
        keys = [schema.schema_id for schema in schemas if schema.part.value == "key"]
        values = [schema.schema_id for schema in schemas if schema.part.value == "value"]
        if not values:
            return None
        documentation = self._client.documentation(given.namespace, given.source)
        personal = frozenset(_COLUMN.split(path)[0] for path, field in documentation.fields.items() if field.pii)
        key = self.schema(keys[-1]) if keys else None
        return InputSchema.of(topics[0], key, self.schema(values[-1]), personal)

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self._client.schema_text(schema_id))

    def register(self, target: Target, key: Any, value: Any, personal: frozenset[str]) -> Registered:  # noqa: ANN401 - JSON
        made = self._client.register(
            target.namespace,
            "avro",
            json.dumps(value, ensure_ascii=False),
            source=target.source,
            key=json.dumps(key, ensure_ascii=False),
            owner=target.owner,
            doc=target.doc,
            fields={name: {"pii": True} for name in sorted(personal)},
        )
        assert made.key_schema_id is not None
        return Registered(made.topic, made.key_schema_id, made.schema_id)

    def close(self) -> None:
        self._client.close()

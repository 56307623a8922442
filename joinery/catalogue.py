"""Asks the Schematizer for the schemas of inputs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.kinds import Status
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.errors.codes import CdcError, Code
from joinery.faults import several_topics
from joinery.planning.input_schema import InputSchema

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings
    from joinery.definition import Input

_CACHE_SECONDS = 5.0
_COLUMN = re.compile(r"[.\[{]")  # ends the name of a column in the path of a field


class Catalogue(Protocol):
    """The schemas of inputs. CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED."""

    def input_schema(self, given: Input, /) -> InputSchema | None:
        """The newest schemas of an input's topic; None if it has none yet. CdcError JOIN_INPUT for several topics."""
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

    def input_schema(self, given: Input) -> InputSchema | None:
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
        key = self._schema(keys[-1]) if keys else None
        return InputSchema.of(topics[0], key, self._schema(values[-1]), personal)

    def close(self) -> None:
        self._client.close()

    def _schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self._client.schema_text(schema_id))

"""A registry with Confluent's API alone: topics are found and chosen by their names, `<namespace>.<source>[-vN]`."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from cdc_common.clients.registry.errors import IncompatibleSchemaError
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import versions
from transformer.routing.registered import Newest, Part, Registered
from transformer.steps.derive import SOURCE_TOPIC

if TYPE_CHECKING:
    from cdc_common.clients.registry.confluent import RegistryClient
    from transformer.definition import CatalogueSource, Transformer
    from transformer.steps.derive import Derived


class ConfluentCatalogue:
    """transformer.routing.catalogue.Catalogue. A target's topic is the first version that was made from the same topic,
    and whose schemas the registry accepts.
    """

    knows_personal = False

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry

    def close(self) -> None:
        self._registry.close()

    def topics(self, place: CatalogueSource) -> list[str]:
        return list(takewhile(lambda topic: self._registry.has(f"{topic}-value"), versions(str(place))))

    def newest(self, topic: str) -> Newest | None:
        value = self._registry.latest(f"{topic}-value")
        if value is None:
            return None
        key = self._registry.latest(f"{topic}-key")
        return Newest(value[0], None if key is None else key[1], value[1])

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        return self._registry.get(schema_id)

    def version(self, topic: str, part: Part, schema_id: int) -> int | None:
        return self._registry.versions(schema_id).get(f"{topic}-{part}")

    def personal(self, place: CatalogueSource) -> frozenset[str]:
        raise CdcError(
            Code.REGISTRY_REFUSED,
            f"The schema registry does not know which columns of {place} are personal: it is not a "
            "cassandra-schematizer.",
            "Name the columns to mask, or use cassandra-schematizer.",
        )

    def register(self, transformer: Transformer, derived: Derived) -> Registered:
        for topic in versions(str(transformer.target)):
            latest = self._registry.latest(f"{topic}-value")
            if latest is not None and latest[1].get(SOURCE_TOPIC) != derived.value_schema[SOURCE_TOPIC]:
                continue
            key_subject = f"{topic}-key"
            if derived.key_schema is not None and not self._has_room(key_subject, derived.key_schema):
                continue
            try:
                value_id = self._registry.register(f"{topic}-value", derived.value_schema)
            except IncompatibleSchemaError:
                continue
            key = derived.key_schema
            key_id = None if key is None else self._registry.register(key_subject, key)
            return Registered(topic, key_id, value_id)
        raise AssertionError("versions have no end")

    def _has_room(self, subject: str, schema: dict[str, Any]) -> bool:
        """Whether the subject has this schema, or none: a topic's key schema never changes."""
        return not self._registry.has(subject) or self._registry.lookup(subject, schema) is not None

"""The changing group of topics that a consumer reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.clients.registry.errors import not_found
from cdc_common.clients.registry.kinds import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.clients.registry.schematizer import SchematizerClient, TopicsChange
    from cdc_common.clients.registry.views import Topic


class Followed:
    """The topics of sources or of a data target, whatever their status. One thread uses it."""

    def __init__(
        self,
        client: SchematizerClient,
        sources: Sequence[tuple[str, str]],
        data_target: str | None,
        schema_id: int | None,
    ) -> None:
        """`sources`: namespace and name. `schema_id`: stands for the sources that have this schema, where neither
        sources nor a data target are given. ValueError if all or too much is missing; RegistryRequestError.
        """
        if sources and data_target is not None:
            raise ValueError("Give sources or a data target, not both.")
        if not sources and data_target is None and schema_id is None:
            raise ValueError("Give sources, a data target, or the id of a schema.")
        self._client = client
        self._data_target = data_target
        self._last: TopicsChange | None = None
        self._sources = list(sources)
        if schema_id is not None and not sources and data_target is None:
            names = {topic.topic for topic in client.schema(schema_id).topics if topic.part is Part.VALUE}
            self._sources = sorted({(topic.namespace, topic.source) for topic in map(client.topic, sorted(names))})

    def topics(self) -> list[Topic]:
        """Return the topics that the service knows now. RegistryRequestError, also if a source has no topic."""
        if self._data_target is not None:
            self._last = self._client.topics_change(self._data_target, self._last)
            return self._last.topics
        if not self._sources:
            raise not_found("No source has this schema: there is no topic to read.", "Register the schema first.")
        return [topic for source in self._sources for topic in self._of_source(*source)]

    def _of_source(self, namespace: str, source: str) -> list[Topic]:
        found = self._client.assigned_topics(namespace, source, is_fresh=True)
        if not found:
            raise not_found(f"{namespace}/{source} has no topic.", "Register a schema for it first.")
        return found

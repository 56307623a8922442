"""The changing group of topics that a consumer reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.client.transport import SchematizerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schematizer.client.client import SchematizerClient, TopicsChange
    from schematizer.views import Topic

READ_KINDS = ("change", "other")  # raw and dead topics are the materializer's own


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
        sources nor a data target are given. ValueError if all or too much is missing; SchematizerError.
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
            in_topics = {each.topic for each in client.schema(schema_id).topics if each.part.value == "value"}
            self._sources = sorted({(each.namespace, each.source) for each in map(client.topic, sorted(in_topics))})

    def topics(self) -> list[Topic]:
        """Return the topics that the service knows now. SchematizerError, also if a source has no topic."""
        if self._data_target is not None:
            self._last = self._client.follow(self._data_target, self._last)
            return self._last.topics
        if not self._sources:
            raise SchematizerError(404, "not-found", "No source has this schema: there is no topic to read.")
        return [topic for source in self._sources for topic in self._of_source(*source)]

    def _of_source(self, namespace: str, source: str) -> list[Topic]:
        topics = self._client.topics_of_source(namespace, source, is_fresh=True)
        found = [each for each in topics if each.kind.value in READ_KINDS]
        if not found:
            raise SchematizerError(
                404, "not-found", f"{namespace}/{source} has no topic: register a schema for it first."
            )
        return found

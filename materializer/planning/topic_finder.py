"""Choose what finds the change topics: the job by a template, or the registry by assignment (materializer.topics)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.messages.topics import change_topic
from materializer.planning.assigned_topics import AssignedTopics
from materializer.planning.change_topics import ChangeTopics
from materializer.planning.topic_cache import TopicCache
from stream_runtime.state.checkpoint_location import object_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cdc_common.messages.avro.type_forms import TypeForms
    from materializer.planning.plan import ChangeTopic, TableSchema
    from materializer.planning.registry import Registry
    from materializer.settings import Settings


class TopicFinder(Protocol):
    """ChangeTopics or AssignedTopics."""

    def check_reachable(self) -> None: ...

    def find_or_create(self, schemas: Sequence[TableSchema], forms: TypeForms) -> tuple[ChangeTopic | None, ...]: ...


def topic_finder(settings: Settings, registry: Registry, make_topic: Callable[[str], int]) -> TopicFinder:
    """make_topic: creates a topic unless it exists, and tells its partition count."""
    if settings.materializer.topics == "registry":
        assigner = SchematizerClient.of_settings(settings.registry)
        return AssignedTopics(settings.kafka.topic_prefix, assigner, registry, _cache(settings), make_topic)
    return ChangeTopics(settings.kafka.topic_prefix, registry, make_topic)


def topics_of_table(settings: Settings, keyspace: str, table: str, existing: Collection[str]) -> list[str]:
    """Return the existing topics that are change topics of the table, whoever named them. CdcError REGISTRY_UNREACHABLE
    or REGISTRY_REFUSED.
    """
    prefix = settings.kafka.topic_prefix
    name = re.escape(change_topic(prefix, keyspace, table))
    found = {topic for topic in existing if re.fullmatch(rf"{name}(-v\d+)?", topic)}
    if settings.materializer.topics == "registry":
        with SchematizerClient.of_settings(settings.registry) as client:
            assigned = {topic.name for topic in client.assigned_topics(f"{prefix}.{keyspace}", table)}
        assigned |= _cache(settings).names(f"{keyspace}.{table}")
        found |= assigned & set(existing)
    return sorted(found)


def _cache(settings: Settings) -> TopicCache:
    return TopicCache(object_store(settings.materializer), settings.materializer.group_id)

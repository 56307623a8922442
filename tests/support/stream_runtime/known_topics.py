"""Topics of a Kafka in memory, for jobs that choose their topics by files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.records import TopicShape

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdc_common.settings import KafkaSettings


class KnownTopics:
    """stream_runtime.kafka.Topics: all have one partition."""

    def __init__(self, _settings: KafkaSettings) -> None:
        pass

    def partition_counts(self) -> dict[str, int]:
        return dict.fromkeys(("shop.orders", "shop.plain", "cdc.shop.users"), 1)

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape]:
        return {topic: TopicShape(1, f"id of {topic}") for topic in topics}

    def each_is_compacted(self, topics: Collection[str]) -> dict[str, bool]:
        return dict.fromkeys(topics, False)

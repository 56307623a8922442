"""Asks Kafka for the offsets of topics and consumer groups. No other module of Watson talks to Kafka."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from cdc_common.clients.group_offsets import CommittedOffsets
from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER, client_config
from cdc_common.clients.kafka_errors import explain
from schematizer.measures.measured import Partition, Sample

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdc_common.settings import KafkaSettings

ANSWER_SECONDS = 10.0


class OffsetsError(Exception):
    """Kafka did not answer; the reason in its client's words."""


class Offsets:
    """One client for all questions but that for a group's offsets, which needs one of its own. Not for several
    threads.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        config: Any = client_config(settings)
        config["logger"] = LIBRDKAFKA_LOGGER
        self._admin = AdminClient(config)

    def sample(self, topics: Collection[str]) -> Sample:
        """The offsets of those topics that exist, and of all groups that have read any of them. A group whose offsets
        this user may not see is left out. OffsetsError.
        """
        self._admin.poll(0)
        try:
            partitions = self._partitions(topics)
            ends = self._ends(partitions)
            committed = {group: self._committed(group, ends) for group in self._groups()} if ends else {}
        except KafkaException as error:
            raise OffsetsError(explain(error.args[0])) from error
        return Sample(monotonic(), ends, {group: offsets for group, offsets in committed.items() if offsets})

    def _partitions(self, topics: Collection[str]) -> list[Partition]:
        known = self._admin.list_topics(timeout=ANSWER_SECONDS).topics
        return [(name, number) for name in topics if name in known for number in known[name].partitions]

    def _ends(self, partitions: list[Partition]) -> dict[Partition, int]:
        if not partitions:
            return {}
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, number): latest for topic, number in partitions}
        answers = self._admin.list_offsets(wanted, request_timeout=ANSWER_SECONDS)
        found: dict[Partition, int] = {}
        for partition, answer in answers.items():
            try:
                found[partition.topic, partition.partition] = answer.result(ANSWER_SECONDS).offset
            except KafkaException:
                continue  # without a leader just now: unknown
        return found

    def _groups(self) -> list[str]:
        answer = self._admin.list_consumer_groups(request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
        return sorted(group.group_id for group in answer.valid)

    def _committed(self, group: str, wanted: Collection[Partition]) -> dict[Partition, int]:
        try:
            with CommittedOffsets(self._settings, group) as offsets:
                return offsets.committed(wanted, ANSWER_SECONDS, skip_errors=True)
        except KafkaException:
            return {}  # no right to see this group, or it is just moving

"""Commits by Kafka's transactions: messages, and the offsets of the consumer group.

Kafka fences by transactional id, and a share has one. So each partition has an owner: the share whose id may commit it.
The metadata of the committed offset names the owner, unless it is the share of this partition alone. A share takes over
a partition of another one by a transaction under the other one's id. That transaction fences the other share, keeps its
offset and names the new owner. If two shares do this at the same time, only one of the transactions succeeds: both are
under the same id. So at any time at most one producer can commit a partition, whatever shares processes believe in.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import KafkaException

from stream_runtime.fault_points import FaultPoint, Point, reach
from stream_runtime.kafka.positions import GroupPositions
from stream_runtime.kafka.producer import PRODUCER_DEFAULTS, FencingProducer, ProducerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from confluent_kafka import Consumer

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import ChangeRun, Message, Share, SourcePartition
    from stream_runtime.source_batch import MessageGroups

_OWNER = "share"


class GroupOffsets(Protocol):
    """The offsets of a consumer group, read through one of its consumers."""

    @property
    def consumer(self) -> Consumer: ...

    def stored(self, partitions: Collection[SourcePartition], /) -> Mapping[SourcePartition, StoredOffset | None]:
        """The committed offsets. Waits for open transactions. KafkaException."""
        ...


def no_first_offset(partition: SourcePartition) -> StoredOffset:
    """A share of one partition needs no first offset."""
    raise ValueError(f"{partition} has no offset that its share could take over")


class KafkaCommits:
    """stream_runtime.exactly_once.commits.Commits. KafkaException, or the CdcErrors of FencingProducer."""

    def __init__(  # noqa: PLR0913 - what a producer and its group are made of
        self,
        settings: KafkaSettings,
        group: str,
        share: Share,
        offsets: GroupOffsets,
        limits: ProducerSettings = PRODUCER_DEFAULTS,
        *,
        before_commit: Point = FaultPoint.AFTER_SEND_OFFSETS,
        first_offset: Callable[[SourcePartition], StoredOffset] = no_first_offset,
    ) -> None:
        """before_commit: the fault point between sending offsets and committing them. first_offset: the position of a
        partition that has none, where the share has several.
        """
        self._settings = settings
        self._group = group
        self._share = share
        self._offsets = offsets
        self._limits = limits
        self._before_commit = before_commit
        self._first_offset = first_offset
        self._has_begun = False
        self._producer = self._fence(share.id)

    def read(self) -> Mapping[SourcePartition, StoredOffset | None]:
        found = self._read_stable()
        while others := _of_others(self._share, found):
            self._take_over_all(others)
            found = self._offsets.stored(self._share.partitions)
        return found

    def send(self, message: Message) -> None:
        if not self._has_begun:
            self._begin()
        self._producer.send(message)

    def send_changes(self, run: ChangeRun) -> None:
        if not self._has_begun:
            self._begin()
        self._producer.send_changes(run)

    def send_groups(self, messages: MessageGroups) -> None:
        if not self._has_begun:
            self._begin()
        self._producer.send_groups(messages)

    def commit(self, offsets: Mapping[SourcePartition, StoredOffset]) -> None:
        if not self._has_begun:
            self._begin()
        self._producer.send_offsets(self._owned(offsets))
        reach(self._before_commit)
        self._producer.commit()
        self._has_begun = False

    def close(self) -> None:
        self._producer.abandon()

    def _begin(self) -> None:
        self._producer.begin()
        self._has_begun = True

    def _fence(self, share_id: str) -> FencingProducer:
        return FencingProducer(self._settings, self._group, share_id, self._offsets.consumer, self._limits)

    def _read_stable(self) -> Mapping[SourcePartition, StoredOffset | None]:
        """The offsets once no transaction is open. One of another owner, which hangs, is ended."""
        try:
            return self._offsets.stored(self._share.partitions)
        except KafkaException:
            latest = GroupPositions(self._settings, self._group, stable=False).stored(self._share.partitions)
            others = _of_others(self._share, latest)
            if not others:
                raise
            self._take_over_all(others)
            return self._offsets.stored(self._share.partitions)

    def _take_over_all(self, others: Mapping[str, Sequence[SourcePartition]]) -> None:
        for owner, partitions in others.items():
            self._take_over(owner, partitions)

    def _take_over(self, owner: str, partitions: Sequence[SourcePartition]) -> None:
        """Make this share the owner of partitions that another one has, at its last offsets."""
        producer = self._fence(owner)
        found = self._offsets.stored(partitions)
        offsets = {
            partition: stored or self._first_offset(partition)
            for partition, stored in found.items()
            if owner_of(partition, stored) == owner  # otherwise a third one was faster
        }
        if offsets:
            producer.begin()
            producer.send_offsets(self._owned(offsets))
            producer.commit()

    def _owned(self, offsets: Mapping[SourcePartition, StoredOffset]) -> dict[SourcePartition, StoredOffset]:
        """The offsets with this share as the owner in their metadata."""
        return {partition: self._named(partition, stored) for partition, stored in offsets.items()}

    def _named(self, partition: SourcePartition, stored: StoredOffset) -> StoredOffset:
        if owner_of(partition, stored) == self._share.id:
            return stored
        fields = _fields(stored.metadata)
        fields.pop(_OWNER, None)
        if self._share.id != str(partition):
            fields[_OWNER] = self._share.id
        return stored._replace(metadata=json.dumps(fields, separators=(",", ":")))


def owner_of(partition: SourcePartition, stored: StoredOffset | None) -> str:
    """The id of the share that may commit the partition."""
    if stored is None or f'"{_OWNER}"' not in stored.metadata:  # without parsing: it is asked for each chunk
        return str(partition)
    return str(_fields(stored.metadata).get(_OWNER, partition))


def _of_others(
    share: Share, found: Mapping[SourcePartition, StoredOffset | None]
) -> Mapping[str, Sequence[SourcePartition]]:
    """Those of the share's partitions that other shares own, by owner."""
    others: dict[str, list[SourcePartition]] = defaultdict(list)
    for partition, stored in found.items():
        if (owner := owner_of(partition, stored)) != share.id:
            others[owner].append(partition)
    return others


def _fields(metadata: str) -> dict[str, object]:
    """The fields of metadata; none if it is not the job's: an operator may have set the offset."""
    try:
        fields = json.loads(metadata)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}

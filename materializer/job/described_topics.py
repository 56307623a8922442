"""Kafka's descriptions of change topics, asked for many tables at once before their plans are made.

A restart plans all tables. Asked table by table, each plan would cost three requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cdc_common.errors.codes import CdcError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stream_runtime.records import TopicShape


class AskedTopics(Protocol):
    """stream_runtime.kafka.Topics. CdcError (KAFKA_UNREACHABLE, KAFKA_REFUSED)."""

    def each_shape(self, topics: Collection[str], /) -> Mapping[str, TopicShape | CdcError]: ...

    def each_max_message_bytes(self, topics: Collection[str], /) -> Mapping[str, int | CdcError]: ...

    def make_change_topic(self, topic: str, /) -> TopicShape: ...


class DescribedTopics:
    """Each answer serves one plan: `forget` it then, and the next plan asks again. Threads may make plans."""

    def __init__(self, topics: AskedTopics) -> None:
        self._topics = topics
        self._shapes: dict[str, TopicShape] = {}
        self._limits: dict[str, int] = {}

    def describe(self, names: Collection[str]) -> None:
        """Ask for existing topics. One that cannot be described now is asked for by itself later."""
        for name, shape in self._topics.each_shape(names).items():
            if not isinstance(shape, CdcError):
                self._shapes[name] = shape
        for name, limit in self._topics.each_max_message_bytes(names).items():
            if not isinstance(limit, CdcError):
                self._limits[name] = limit

    def make(self, name: str) -> int:
        """Create the topic unless it exists: its partition count."""
        shape = self._shapes.get(name)
        if shape is None:
            shape = self._shapes[name] = self._topics.make_change_topic(name)
        return shape.partitions

    def shapes(self, names: Collection[str], listed: Collection[str]) -> dict[str, TopicShape | CdcError]:
        """The shape of each of these topics, or its error. One that is not `listed` is created again: it was deleted
        since it was found.
        """
        for name in names:
            if name not in listed:
                self.make(name)
        known: dict[str, TopicShape | CdcError] = {name: self._shapes[name] for name in names if name in self._shapes}
        return known | dict(self._topics.each_shape([name for name in names if name not in known]))

    def max_message_bytes(self, names: Collection[str]) -> int:
        """The smallest max.message.bytes of the topics. CdcError if one of them cannot be asked for."""
        asked = self._topics.each_max_message_bytes([name for name in names if name not in self._limits])
        limits = [self._limits[name] for name in names if name in self._limits]
        for limit in asked.values():
            if isinstance(limit, CdcError):
                raise limit
            limits.append(limit)
        return min(limits)

    def forget(self, names: Iterable[str]) -> None:
        """The plan is made."""
        for name in names:
            self._shapes.pop(name, None)
            self._limits.pop(name, None)

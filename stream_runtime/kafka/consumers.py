"""A worker's consumer: the core's, or confluent-kafka's where the core is not in use. Both have the same methods."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Message

import cdc_native
from cdc_common.clients.kafka import LOG_LEVEL, LOGGED
from stream_runtime.records import Record, SourcePartition, SourceRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

_AT_ONCE = 1000

Errors = list[tuple[SourcePartition | None, int, KafkaError]]
"""Errors and ends of partitions, each with its offset; an error without a partition is the consumer's."""


class Polled(NamedTuple):
    """The result of a read by a consumer."""

    # The messages of each partition, in the order of their offsets.
    records: list[tuple[SourcePartition, list[Record]]]
    # Bytes of their keys and values.
    size: int
    # The errors.
    errors: Errors


class _Consumed(NamedTuple):
    """The messages that confluent-kafka has given, before they are sorted by partition."""

    # Each message with its partition.
    messages: list[tuple[SourcePartition, Message]]
    # Bytes of their keys and values.
    size: int
    # The errors.
    errors: Errors


class ConfluentConsumer(Consumer):
    """confluent-kafka's consumer, with the core's ways to read: see native_clients.NativeConsumer."""

    def poll(  # type: ignore[override]
        self, most: int, seconds: float
    ) -> tuple[list[tuple[SourcePartition, list[SourceRecord]]], Errors]:
        found: dict[SourcePartition, list[SourceRecord]] = defaultdict(list)
        consumed = self._read(most, math.inf, seconds)
        for partition, message in consumed.messages:
            key, value, offset = message.key(), message.value(), message.offset()
            assert offset is not None
            found[partition].append(
                SourceRecord(None if key is None else bytes(key), None if value is None else bytes(value), offset)
            )
        return list(found.items()), consumed.errors

    def poll_records(self, most: int, most_bytes: int, seconds: float) -> Polled:
        found: dict[SourcePartition, list[Record]] = defaultdict(list)
        consumed = self._read(most, most_bytes, seconds)
        for partition, message in consumed.messages:
            found[partition].append(record_of(message))
        return Polled(list(found.items()), consumed.size, consumed.errors)

    def _read(self, most: int, most_bytes: float, seconds: float) -> _Consumed:
        """Read until a limit is reached."""
        end = time.monotonic() + seconds
        found: list[tuple[SourcePartition, Message]] = []
        errors: Errors = []
        count = size = 0
        while count < most and size < most_bytes:
            asked = min(_AT_ONCE, most - count)
            left = end - time.monotonic()
            messages = self.consume(asked, max(0.0, left))
            count += len(messages)
            for message in messages:
                where = SourcePartition(message.topic() or "", message.partition() or 0)
                error, offset = message.error(), message.offset()
                if error is None:
                    size += len(message.key() or b"") + len(message)  # that of its value
                    found.append((where, message))
                else:
                    errors.append((where if message.topic() else None, -1 if offset is None else offset, error))
            if left <= 0 and len(messages) < asked:
                break
        return _Consumed(found, size, errors)


def open_consumer(properties: Mapping[str, object]) -> Any:  # noqa: ANN401 - one of two clients with the same methods
    """The core's consumer if it is in use. It logs through the program's log: the worker must poll it all the time."""
    if cdc_native.is_enabled():
        from stream_runtime.kafka.native_clients import NativeConsumer  # noqa: PLC0415 - the core may be missing

        return NativeConsumer({**properties, "log_level": LOG_LEVEL})
    return ConfluentConsumer({**properties, **LOGGED})


def record_of(message: Message) -> Record:
    """The record of a source topic's message."""
    fields = message.key() or b"", message.value() or b"", message.offset(), message.timestamp()[1]
    return tuple.__new__(Record, fields)  # half of the time of Record(...)

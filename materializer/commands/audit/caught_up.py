"""How far the nodes' logs are in a state, where the job had nothing to store: an idle raw partition sleeps.

A publisher's watermark says what is in Kafka. A raw partition that is folded up to an end that was asked for after the
watermark was read has all of it (decision 0048).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages import watermarks
from cdc_common.messages.errors import MessageError
from cdc_common.messages.topics import watermarks_topic
from materializer.commands.stored_partitions import read_positions
from materializer.fold.publishers import decode_watermark
from materializer.fold.reorder import has_buffered
from materializer.rows.keys import PUBLISHER, PUBLISHER_END
from stream_runtime.kafka import TopicReader, Topics

if TYPE_CHECKING:
    from materializer.records import RawPartition
    from materializer.settings import MaterializerSettings, Settings
    from stream_runtime.state.reader import StateReader


class CaughtUp(NamedTuple):
    """The times up to which the nodes' logs are folded in one raw partition."""

    # By a host's id: everything in its log up to this time (µs of its clock) is folded.
    clocks: Mapping[bytes, int]
    # Whether no message has ever come, so that there is no state.
    is_empty: bool = False

    def reached_us(self, state: StateReader, settings: MaterializerSettings) -> int:
        """Everything in the nodes' logs up to this time (µs) is folded, as far as the watermarks and the state say it;
        0 without publishers, and while writes wait in the reorder buffer.
        """
        if has_buffered(state):
            return 0
        forgotten = {host.bytes for host in settings.forgotten_publishers}
        stored = {key[1:]: decode_watermark(value).clock_us for key, value in state.scan(PUBLISHER, PUBLISHER_END)}
        hosts = (stored.keys() | self.clocks.keys()) - forgotten
        return min((max(stored.get(host, 0), self.clocks.get(host, 0)) for host in hosts), default=0)


def find_caught_up(settings: Settings, raw_partition: RawPartition, table_id: bytes) -> CaughtUp:
    """The newest watermarks of a table, if the raw partition is folded up to its end; no clocks otherwise."""
    said = TopicReader(settings.kafka, watermarks_topic(settings.kafka.topic_prefix)).read_to_end()
    end = Topics(settings.kafka).ends([raw_partition]).get(raw_partition)
    position = read_positions(settings, [raw_partition])[raw_partition]
    folded = 0 if position is None else position.offset
    if end is None or folded < end:
        return CaughtUp({})
    return CaughtUp(_clocks([value for _, value in said], table_id), is_empty=position is None)


def _clocks(values: list[bytes], table_id: bytes) -> dict[bytes, int]:
    clocks: dict[bytes, int] = {}
    for value in values:
        with suppress(MessageError):  # the job reports it
            watermark = watermarks.decode(value)
            if table_id in watermark.tables:
                clocks[watermark.host_id] = watermark.tables[table_id].clock
    return clocks

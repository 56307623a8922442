"""Waiting until all that was written has come out: invariant 1's condition, and no sleep in its place.

A row is written to every raw partition, at consistency ALL, so each node with CDC has it in its log after everything
written so far. When its raw messages of all these nodes are there, then a heartbeat after the last expiry, and the
materializer's group has passed these, then what was written and what has expired is in the change topics.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.raw import decode
from cdc_common.messages.topics import partition_for
from dev.verify.model.cql_text import Cql, cql, joined
from dev.verify.model.raw_log import Place
from dev.verify.model.statement import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.verify.model.raw_log import RawLog
    from dev.verify.model.tables import Table

SETTLE_SECONDS = 600.0
FIRST_MARKER = 1_000_000
MARKERS_A_TIME = 1_000
COPY_SECONDS = 2.0  # between two copies of messages that only move the time


class Marker(NamedTuple):
    """A row to be seen in the raw topic."""

    # The Cassandra partition of the row.
    place: Place
    # The key of its raw message.
    key: bytes


class Settler:
    """Waits until the present tables of one keyspace, whose writes come from `hosts` nodes, are settled.

    `push` makes the nodes hand over what is in their logs, where they would otherwise wait.
    """

    def __init__(
        self,
        client: CqlClient,
        keyspace: str,
        tables: Mapping[str, Table],
        raw: RawLog,
        hosts: int,
        push: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._push = push
        self._keyspace = keyspace
        self._tables = tables
        self._raw = raw
        self._hosts = hosts
        self._first = FIRST_MARKER
        self.marked: dict[str, list[int]] = defaultdict(list)  # the partitions with such rows, by table

    def wait_until_settled(self, quiet_after: float, seconds: float = SETTLE_SECONDS) -> None:
        """Returns when all written before now, and all that had expired by `quiet_after` (time.time()), is out; which
        takes `seconds` at most.
        """
        deadline = time.monotonic() + seconds
        markers = list(self._mark())
        self._push()
        targets = self._await_markers(markers, deadline)
        self._await_time(targets, quiet_after, deadline)
        while behind := [place for place, offset in self._raw.folded().items() if offset < targets[place]]:
            assert time.monotonic() < deadline, f"the materializer stands before {behind}"
            time.sleep(0.2)

    def _mark(self) -> Iterator[Marker]:
        for table in [table for table in self._tables.values() if table.is_cdc]:
            for number, place in self._numbers(table):
                self._client.execute_at_all(Part(table, number, marker_cql(table)).literal(self._keyspace))
                self.marked[table.name].append(number)
                yield Marker(place, table.partition_key(number))
        self._first += MARKERS_A_TIME

    def _numbers(self, table: Table) -> Iterator[tuple[int, Place]]:
        """A partition that was never written before for each raw partition."""
        count, topic = self._raw.partitions(table.name), self._raw.topic(table.name)
        left = set(range(count))
        for number in itertools.count(self._first):
            at = partition_for(table.partition_key(number), count)
            if at in left:
                left.remove(at)
                yield number, (topic, at)
            if not left:
                return

    def _await_markers(self, markers: Sequence[Marker], deadline: float) -> dict[Place, int]:
        """The offsets after the markers' messages from every host."""
        seen: dict[Marker, set[bytes]] = {marker: set() for marker in markers}
        targets = dict.fromkeys((marker.place for marker in markers), 0)
        looked = dict.fromkeys(targets, 0)
        while any(len(hosts) < self._hosts for hosts in seen.values()):
            assert time.monotonic() < deadline, f"no markers from {self._hosts} nodes in {missing(seen, self._hosts)}"
            self._raw.poll(0.2)
            for place in targets:
                for record in self._raw.records[place][looked[place] :]:
                    marker = Marker(place, record.key)
                    if marker in seen:
                        seen[marker].add(decode(record.value).host_id)
                        targets[place] = record.offset + 1
                looked[place] = len(self._raw.records[place])
        return targets

    def _await_time(self, targets: dict[Place, int], quiet_after: float, deadline: float) -> None:
        """Move the targets past a message whose broker's time is later. A copy of one that is there is sent then: it
        changes only the time.
        """
        left = set(targets)
        again = quiet_after
        while left:
            assert time.monotonic() < deadline, f"no later message in {left}"
            if time.time() > again:
                self._raw.send_again(left)
                again = time.time() + COPY_SECONDS
            for place in list(left):
                last = self._raw.records[place][-1]
                if last.timestamp_ms > quiet_after * 1000:
                    targets[place] = max(targets[place], last.offset + 1)
                    left.remove(place)
            if left:
                self._raw.poll(0.2)


def missing(seen: dict[Marker, set[bytes]], hosts: int) -> list[Place]:
    return [marker.place for marker, of in seen.items() if len(of) < hosts]


def marker_cql(table: Table) -> Cql:
    """A row that stays."""
    if table.is_counter:
        [name, *_] = [name for name, _ in table.regular]
        where = [table.partition_where, *(cql("{} = {}", one.name, one.kind.numbered(1)) for one in table.clustering)]
        return cql("UPDATE $k.{} SET {} = {} + 1 WHERE {}", table.name, name, name, joined(" AND ", where))
    columns = table.regular[:1] if table.is_compact else ()
    values = [one.kind.numbered(1) for one in table.clustering] + [kind.numbered(1) for _, kind in columns]
    names = ", ".join([*table.row_names, *(name for name, _ in columns)])
    listed = joined(", ", (*table.partition_terms, *values))
    return cql("INSERT INTO $k.{} ({}) VALUES ({}) USING TTL 0", table.name, names, listed)

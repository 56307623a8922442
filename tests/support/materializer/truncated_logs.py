"""Hosts whose logs have writes and truncations, what their publishers send of them, and what is left in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.fold_checks import NEVER_PURGE, TIMESTAMPS, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import raw_record, rows_end
from tests.support.materializer.table_writes import BASE_S, PARTITIONS, Stamp, writes

if TYPE_CHECKING:
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings
    from tests.support.materializer.raw_builder import TableWriter

HOSTS = (1, 2, 3)
APART_MS = NEVER_PURGE.truncate_ms
SKEW_MS = 300  # between the hosts of one TRUNCATE
END_S = BASE_S + 10**6


class Truncation(NamedTuple):
    at: int


class Entry(NamedTuple):
    """Of a host's log."""

    position: int
    what: Write | Truncation


class Cluster:
    """Writes reach some hosts, a TRUNCATE all of them or, if it fails, some; then it is tried again."""

    def __init__(self, writer: TableWriter, data: st.DataObject) -> None:
        self._writer = writer
        self._data = data
        self._now = BASE_S * 1000
        self.logs: dict[int, list[Entry]] = {host: [] for host in HOSTS}
        for _ in range(data.draw(st.integers(1, 14))):
            if data.draw(st.integers(0, 3)):
                self._write()
            else:
                self._truncate()

    def _append(self, host: int, what: Write | Truncation) -> None:
        self.logs[host].append(Entry(len(self.logs[host]) + 1, what))

    def _write(self) -> None:
        write = self._data.draw(writes(self._writer.table, Stamp(self._data.draw(TIMESTAMPS), BASE_S)))
        for host in self._data.draw(st.sets(st.sampled_from(HOSTS), min_size=1)):
            self._append(host, write)

    def _truncate(self) -> None:
        # Nearer to one another they count as one event: a known limit (docs/decisions/0035).
        self._now += self._data.draw(st.sampled_from([2, 10])) * APART_MS
        reached = self._data.draw(st.sets(st.sampled_from(HOSTS), min_size=1))
        if len(reached) < len(HOSTS) and self._data.draw(st.booleans()):  # a host dies; then it is tried again
            self._now += 10 * APART_MS
            self._truncate_on(reached)
            if self._data.draw(st.booleans()):
                self._write()
            self._now += 10 * APART_MS
        self._truncate_on(set(HOSTS))

    def _truncate_on(self, hosts: set[int]) -> None:
        for host in hosts:
            self._append(host, Truncation(self._now + self._data.draw(st.integers(0, SKEW_MS))))

    def left(self) -> list[Write]:
        """What every host has since its own last truncation."""
        found = []
        for log in self.logs.values():
            ends = [entry.position for entry in log if isinstance(entry.what, Truncation)]
            found += [entry.what for entry in log[max(ends, default=0) :] if isinstance(entry.what, Write)]
        return found

    def sent(self, host: int) -> list[Entry]:
        """In the order of the log or, where a truncation is noticed late, with what follows it before and after it;
        and some of it again after a crash.
        """
        log, found = self.logs[host], list[Entry]()
        at = 0
        while at < len(log):
            if isinstance(log[at].what, Truncation):
                rest = log[at + 1 :]
                ends = [place for place, each in enumerate(rest) if isinstance(each.what, Truncation)]
                late = rest[: self._data.draw(st.integers(0, min(ends, default=len(rest))))]
                found += [*late, log[at], *late]
                at += len(late)
            else:
                found.append(log[at])
            at += 1
        repeated = self._data.draw(st.integers(0, len(found)))
        first = self._data.draw(st.integers(0, repeated))
        return found[:repeated] + found[first:]

    def arrivals(self) -> list[RawRecord]:
        """The messages of all hosts, each in its order, with rising times."""
        queues = {host: self.sent(host) for host in HOSTS}
        ms = BASE_S * 1000
        records = []
        while waiting := [host for host in HOSTS if queues[host]]:
            host = self._data.draw(st.sampled_from(waiting))
            position, what = queues[host].pop(0)
            ms += self._data.draw(st.sampled_from([0, 1, 1000, 200_000]))
            if isinstance(what, Truncation):
                records.append(rows_end(what.at, position=position, host=host, ms=ms, writer=self._writer))
            else:
                records.append(record(self._writer, what, 0, position, host)._replace(timestamp_ms=ms))
        return records


def check_truncations(writer: TableWriter, data: st.DataObject, fold_settings: FoldSettings = NEVER_PURGE) -> FoldRun:
    """Whatever the order of all messages and in whatever chunks: the state has what the hosts have."""
    cluster, model, run = Cluster(writer, data), BruteModel(writer.table), FoldRun(writer, fold_settings)
    model.writes = cluster.left()
    for host in HOSTS:
        run.heartbeat(BASE_S * 1000, host=host)
    records = cluster.arrivals()
    while records:
        size = data.draw(st.integers(1, len(records)))
        run.chunk(*records[:size])
        records = records[size:]
    result = run.chunk(raw_record(b"", "heartbeat", None, timestamp_ms=END_S * 1000, writer=writer))
    assert not result.lost_hosts
    for partition_key in PARTITIONS:
        assert run.visible(partition_key) == model.visible(partition_key, END_S)
    return run

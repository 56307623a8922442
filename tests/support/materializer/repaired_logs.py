"""Hosts whose logs a damaged state has followed, and what their publishers send to repair a Cassandra partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from cdc_common.messages.raw import REPAIR_KINDS, decode
from cdc_common.messages.repairs import is_repair_image
from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.fold_checks import NEVER_PURGE, TIMESTAMPS, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import REPAIR as ID
from tests.support.materializer.raw_builder import as_image, repair_step
from tests.support.materializer.table_writes import BASE_S, PARTITIONS, Stamp, writes

if TYPE_CHECKING:
    from cdc_common.messages.snapshots import HostState
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings
    from tests.support.materializer.raw_builder import TableWriter

HOSTS = (1, 2)
NOBODY = 9
REPAIRED, OTHER = PARTITIONS
END_S = BASE_S + 10**6


class DamagedState:
    """The writes of the hosts, and the messages that arrive: some were lost, and some belong to no host."""

    def __init__(self, writer: TableWriter, data: st.DataObject, reorder_ms: int = 0) -> None:
        self._writer = writer
        self._data = data
        self._reorder_ms = reorder_ms
        self.logs = {host: self._writes(0, 7) for host in HOSTS}
        self.planted = [write for write in self._writes(0, 4) if write.partition_key == REPAIRED]

    def _writes(self, least: int, most: int) -> list[Write]:
        drawn = self._data.draw(st.lists(TIMESTAMPS, min_size=least, max_size=most))
        return [self._data.draw(writes(self._writer.table, Stamp(number, BASE_S))) for number in drawn]

    def arrivals(self) -> list[RawRecord]:
        """Return the planted messages, then the messages of all hosts, each in its order, with rising times."""
        ms = BASE_S * 1000
        records = [record(self._writer, write, BASE_S, number, NOBODY) for number, write in enumerate(self.planted)]
        queues = {host: self._sent(host) for host in HOSTS}
        ms += self._reorder_ms + 1000
        while waiting := [host for host in HOSTS if queues[host]]:
            host = self._data.draw(st.sampled_from(waiting))
            ms += self._data.draw(st.sampled_from([0, 1, 1000, 200_000]))
            records.append(queues[host].pop(0)._replace(timestamp_ms=ms))
        return records

    def _sent(self, host: int) -> list[RawRecord]:
        """A reset after some of the log, images after what they have, and an end. Writes go on, and are repeated."""
        log = self.logs[host]
        begun = self._data.draw(st.integers(0, len(log)))
        flushed = self._data.draw(st.integers(begun, len(log)))
        imaged = self._data.draw(st.integers(flushed, len(log)))
        ended = self._data.draw(st.integers(imaged, len(log)))
        known = [self._record(host, number) for number in range(begun) if self._arrives(log[number])]
        images = [as_image(self._record(host, number), repair=ID) for number in range(flushed)]
        images = [image for image in images if image.key == REPAIRED]
        shuffled = self._data.draw(st.permutations(images))
        kept = self._data.draw(st.integers(0, len(shuffled)))
        late = [self._record(host, number) for number in range(imaged, ended)]
        return [
            *known,
            self._step(host, "running"),
            *(self._record(host, number) for number in range(begun, imaged)),
            *shuffled[:kept],
            *late,
            *shuffled[self._data.draw(st.integers(0, kept)) :],
            *self._again(host, ended),
            self._step(host, "ended", flushed),
            *self._again(host, ended),
            *(self._record(host, number) for number in range(ended, len(log))),
        ]

    def _again(self, host: int, up_to: int) -> list[RawRecord]:
        """Return what comes again after a crash."""
        first = self._data.draw(st.integers(0, up_to))
        return [self._record(host, number) for number in range(first, up_to) if self._arrives(self.logs[host][number])]

    def _arrives(self, write: Write) -> bool:
        return write.partition_key != REPAIRED or self._data.draw(st.booleans())

    def _record(self, host: int, number: int) -> RawRecord:
        return record(self._writer, self.logs[host][number], BASE_S, number + 1, host)

    def _step(self, host: int, state: HostState, flushed: int = 0) -> RawRecord:
        return repair_step(REPAIRED, state, host=host, hosts=HOSTS, flushed_to=flushed, writer=self._writer)


def check_repair(writer: TableWriter, data: st.DataObject, fold_settings: FoldSettings = NEVER_PURGE) -> FoldRun:
    """Whatever the order of all messages and in whatever chunks: the state has what the hosts have, and no more."""
    damaged = DamagedState(writer, data, fold_settings.reorder_ms)
    model, run = BruteModel(writer.table), FoldRun(writer, fold_settings)
    model.writes = [write for log in damaged.logs.values() for write in log]
    fold_in_chunks(run, damaged.arrivals(), data)
    for partition_key in PARTITIONS:
        assert run.visible(partition_key) == model.visible(partition_key, END_S)
    return run


def check_timeout(writer: TableWriter, data: st.DataObject, fold_settings: FoldSettings = NEVER_PURGE) -> None:
    """Check that all is as if there had been no repair if one host does not end."""
    damaged = DamagedState(writer, data, fold_settings.reorder_ms)
    run, without = FoldRun(writer, fold_settings), FoldRun(writer, fold_settings)
    silent, gives_up = data.draw(st.sampled_from(HOSTS)), data.draw(st.booleans())
    records = []
    for arrival in damaged.arrivals():
        message = decode(arrival.value)
        is_end = message.kind == "reset_end" and message.host_id[0] == silent
        if is_end and gives_up:
            given_up = repair_step(REPAIRED, "given_up", host=silent, hosts=HOSTS, writer=writer)
            records.append(given_up._replace(timestamp_ms=arrival.timestamp_ms))
        elif not is_end:
            records.append(arrival)
    fold_in_chunks(run, records, data)
    log = [arrival for arrival in records if not is_of_repair(arrival)]
    fold_in_chunks(without, log, data)
    assert run.merged() == without.merged()
    assert [run.visible(key) for key in PARTITIONS] == [without.visible(key) for key in PARTITIONS]
    assert "repair" not in {change.source.cause for change in run.changes}


def is_of_repair(record: RawRecord) -> bool:
    message = decode(record.value)
    return message.kind in REPAIR_KINDS or is_repair_image(message)


def fold_in_chunks(run: FoldRun, records: list[RawRecord], data: st.DataObject) -> None:
    """All of them, and a heartbeat by which all has expired."""
    while records:
        size = data.draw(st.integers(1, len(records)))
        run.chunk(*records[:size])
        records = records[size:]
    run.heartbeat(END_S * 1000)

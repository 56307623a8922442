"""Whether the fold has what is left on hosts whose table is truncated, whatever the order of all their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.support.materializer.brute_model import BruteModel, Write
from tests.support.materializer.fold_checks import NEVER_PURGE, TIMESTAMPS, record
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import raw_record, rows_end
from tests.support.materializer.table_writes import BASE_S, PARTITIONS, Stamp, writes
from tests.support.materializer.truncated_hosts import BEGIN_MS, HOSTS, Sent, TruncatedHosts, Truncation

if TYPE_CHECKING:
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings
    from tests.support.materializer.raw_builder import TableWriter

END_S = BASE_S + 10**6


def check_truncations(writer: TableWriter, data: st.DataObject, fold_settings: FoldSettings = NEVER_PURGE) -> FoldRun:
    """Whatever the order of all messages and in whatever chunks: the state has what the hosts have."""

    def make_write() -> Write:
        return data.draw(writes(writer.table, Stamp(data.draw(TIMESTAMPS), BASE_S)))

    hosts = TruncatedHosts(data.draw(st.randoms(use_true_random=False)), make_write)
    model, run = BruteModel(writer.table), FoldRun(writer, fold_settings)
    model.writes = [entry.what for _, entry in hosts.left() if isinstance(entry.what, Write)]
    for host in HOSTS:
        run.heartbeat(BEGIN_MS, host=host)
    records = [_record(writer, *arrival) for arrival in hosts.arrivals()]
    while records:
        size = data.draw(st.integers(1, len(records)))
        run.chunk(*records[:size])
        records = records[size:]
    result = run.chunk(raw_record(b"", "heartbeat", None, timestamp_ms=END_S * 1000, writer=writer))
    assert not result.lost_hosts
    for partition_key in PARTITIONS:
        assert run.visible(partition_key) == model.visible(partition_key, END_S)
    return run


def _record(writer: TableWriter, host: int, sent: Sent[Write], ms: int) -> RawRecord:
    if sent.entry is None:
        clock = sent.clock * 1000
        return raw_record(b"", "heartbeat", None, timestamp_ms=ms, host=host, clock=clock, writer=writer)
    position, what = sent.entry
    if isinstance(what, Truncation):
        assert sent.kind is not None
        return rows_end(what.at, position=position, host=host, ms=ms, kind=sent.kind, writer=writer)
    return record(writer, what, 0, position, host)._replace(timestamp_ms=ms)

"""The fold over the real RocksDB, handed from process to process by changelogs: what it does over a dict in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from materializer.fold.chunk import fold_chunk
from materializer.rows.settings import FoldSettings
from stream_runtime.state import changelog
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import LocalStore, open_local_store
from stream_runtime.state.versions import next_version
from tests.support.materializer.fold_checks import record, timed_writes
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import raw_record
from tests.support.materializer.table_writes import MIXED

if TYPE_CHECKING:
    from tests.support.materializer.brute_model import Write

RULES = FoldSettings(reorder_ms=1000, purge_margin_seconds=1, purged_per_chunk=3)


def apply(state: LocalStore, writes: dict[bytes, bytes | None], offset: int) -> None:
    """Apply the writes as a task does, by way of the changelog's file."""
    head = Head(next_version(state.version), offset, 0, 1)
    state.apply(changelog.decode(changelog.encode(Changelog(head, state.version, offset - 1, writes))))


@settings(max_examples=15, deadline=None)
@given(made=timed_writes(MIXED.table, rising=False), data=st.data())
def test_a_state_on_disk_that_is_opened_again_and_again(made: list[tuple[int, Write]], data: st.DataObject) -> None:
    in_memory = FoldRun(MIXED, RULES)
    with tempfile.TemporaryDirectory() as folder:
        state = open_local_store(Path(folder))
        records = [record(MIXED, write, second, offset) for offset, (second, write) in enumerate(made)]
        last = made[-1][0]
        for second in (last + 3, last + 20, last + 40, last + 60):
            beat = raw_record(
                b"", "heartbeat", None, timestamp_ms=second * 1000, clock=second * 1_000_000, writer=MIXED
            )
            records.append(beat)
        for offset, message in enumerate(records):
            result = fold_chunk(state, [message], in_memory.catalog, RULES)
            assert result == in_memory.chunk(message)
            if result.writes:
                apply(state, result.writes, offset)
            if data.draw(st.integers(0, 3)) == 0:
                state.close()
                state = open_local_store(Path(folder))
        assert dict(state.scan(b"\x01", b"\xff")) == in_memory.state.data
        state.close()

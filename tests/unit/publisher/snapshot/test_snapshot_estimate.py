"""The estimate of a snapshot is compared with the snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.files.table_sstables import TableSSTables
from publisher.snapshot.state.estimate import (
    CORE_RATE,
    PYTHON_RATE,
    estimate_table,
    preflight,
)
from publisher.snapshot.state.records import new_record
from tests.support.publisher.both_images import run
from tests.support.vectors import indexed_sstables

if TYPE_CHECKING:
    from tests.support.vectors.indexed_sstables import IndexedVectors


@pytest.fixture(scope="module", params=indexed_sstables.FORMS)
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


def test_the_messages_are_as_large_as_was_estimated(vectors: IndexedVectors) -> None:
    estimate = estimate_table(vectors.table, [vectors.data])
    sstables = TableSSTables(vectors.table, vectors.files())
    sent = run(sstables, sstables.purger(0), native=True)
    assert sent.rows <= estimate.rows  # before the merge
    assert sent.size / sent.rows == pytest.approx(estimate.sent_bytes / estimate.rows, rel=0.15)


def test_the_time_is_that_of_the_code_that_reads(vectors: IndexedVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    record = new_record(vectors.table, hosts=(UUID(int=1), UUID(int=2)))
    for is_native, rate in ((True, CORE_RATE), (False, PYTHON_RATE)):
        monkeypatch.setenv("CDC_NATIVE", str(int(is_native)))
        estimate = estimate_table(vectors.table, [vectors.data])
        assert estimate.rate == rate
        lines = preflight(record, estimate, 0)
        assert f"at {rate >> 20}.0 MiB/s" in "\n".join(lines), lines
    assert "at 0.5 MiB/s" in "\n".join(preflight(record, estimate, 0.5))
    assert [line.split("  ")[1] for line in lines[1:]] == [
        "on this node", "sends", "Kafka's disk", "the state", "keeps", "as exact as", "other nodes"
    ]  # fmt: skip

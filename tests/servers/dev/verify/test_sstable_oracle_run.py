"""A little of `make verify WHAT=oracle-sstable`: SSTables of two versions, judged by Cassandra's own reader."""

from __future__ import annotations

import os

import pytest

from dev.verify.oracle.sstable_run import compressions, judge_version

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800), pytest.mark.exhaustive]

PARTITIONS = 1500
SEED = int(os.environ.get("CDC_ORACLE_SEED", "7"))


@pytest.mark.parametrize("form", ["5.0-bti", "3.11"])
def test_random_statements(form: str) -> None:
    tally = judge_version(form, PARTITIONS, SEED, print)
    assert tally.differences == []
    assert (tally.different, tally.refused) == (0, 0)
    assert tally.partitions >= PARTITIONS
    assert min(tally.rows, tally.markers, tally.statics, tally.deletions) > 100
    assert len(tally.compressors) == len({compression.partition(",")[0] for compression in compressions(form)})

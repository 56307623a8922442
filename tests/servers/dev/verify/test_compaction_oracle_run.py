"""A little of `make verify WHAT=oracle-compaction`: SSTables of two versions, merged by Cassandra and by us."""

from __future__ import annotations

import os

import pytest

from cassandra_storage.formats.merge import reconciliation as merge
from cassandra_storage.formats.merge.purge import Purger
from dev.verify.oracle.compaction_run import judge_version

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

PARTITIONS = 1500
SEED = int(os.environ.get("CDC_ORACLE_SEED", "7"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["5.0-bti", "3.11"])
def test_random_statements(form: str) -> None:
    tally = judge_version(form, PARTITIONS, SEED, print)
    assert tally.differences == []
    assert (tally.different, tally.refused) == (0, 0)
    assert tally.partitions >= PARTITIONS
    assert min(tally.rows, tally.markers, tally.statics, tally.deletions) > 100


@pytest.mark.exhaustive
def test_defects_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def purges(self: Purger, timestamp: int, local_deletion_time: int) -> bool:
        return local_deletion_time < self.now and timestamp < self.before

    with monkeypatch.context() as patched:
        patched.setattr(Purger, "_should_purge", purges)
        assert judge_version("5.0", 1, SEED, print).different
    monkeypatch.setattr(merge, "_resolve_tie", lambda left, _: left)
    assert judge_version("5.0", 1, SEED, print).different

"""A little of `make verify WHAT=oracle`: random statements on two real versions, judged by Cassandra's own reader."""

from __future__ import annotations

import os

import pytest

import cdc_native
from dev.verify.oracle.run import judge_version

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

MUTATIONS = 300
MADE = 400
SEED = int(os.environ.get("CDC_ORACLE_SEED", "7"))


@pytest.mark.exhaustive  # test_commitlog_against_cassandra.py asks the same of one segment in each run
@pytest.mark.parametrize(("version", "forms"), [("5.0-NONE", ["Zstd"]), ("3.11", ["encrypted"])])
def test_random_statements(version: str, forms: list[str]) -> None:
    tally = judge_version(version, forms, MUTATIONS, SEED, print, MADE)
    assert tally.differences == []
    assert tally.mutations >= MUTATIONS
    assert tally.refused == 0
    assert tally.native > MUTATIONS // 2 or not cdc_native.is_enabled()

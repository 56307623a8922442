"""The rule by which hosts are heard around a TRUNCATE, alone: a state is the set of the messages that it has merged."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.messages.raw import RawMessage
from materializer.fold.truncations import Truncations
from materializer.records import Arrival, RawRecord
from materializer.rows.overlay import Overlay
from tests.support.examples import examples
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.truncated_hosts import (
    APART_MS,
    BEGIN_MS,
    BROKEN,
    HOSTS,
    KEPT,
    NEVER_MS,
    Limits,
    Sent,
    TruncatedHosts,
    Truncation,
)

TABLE = b"t" * 16
IDS = {host: bytes([host]) * 16 for host in HOSTS}
RECORD = RawRecord(b"", b"", 0, 0)


def message(host: int, sent: Sent[int]) -> RawMessage:
    at = sent.entry.what.at if sent.entry is not None and isinstance(sent.entry.what, Truncation) else 0
    return RawMessage(
        kind="heartbeat" if sent.entry is None else sent.kind or "row",
        update=b"",
        messaging_version=0,
        table_id=TABLE,
        schema_digest=bytes(16),
        truncation_epoch=at,
        host_id=IDS[host],
        segment=1,
        file="",
        position=0 if sent.entry is None else sent.entry.position,
        index=0,
        clock=sent.clock * 1000,
    )


class RawPartition:
    """`merged`: which messages the rows of its state are of, by host and position."""

    def __init__(self) -> None:
        self.truncations = Truncations(Overlay(MemoryState()), APART_MS, ())
        self.merged: set[tuple[int, int]] = set()

    def receive(self, host: int, sent: Sent[int], ms: int) -> None:
        raw = message(host, sent)
        if sent.entry is None:
            self.truncations.stop_waiting([Arrival(RECORD, raw, ms)], ms)
        elif sent.kind is None:
            if not self.truncations.leaves_out(raw, ms):
                self.merged.add((host, sent.entry.position))
        elif self.truncations.apply(raw, ms, IDS.values()):
            self.merged.clear()

    @property
    def lost(self) -> set[int]:
        return {host for host in HOSTS if IDS[host] in self.truncations.lost}


def folded(random: Random, limits: Limits) -> tuple[RawPartition, set[tuple[int, int]]]:
    """A raw partition that has received all, and what the hosts have."""
    hosts = TruncatedHosts(random, lambda: 0, limits)
    raw_partition, ms = RawPartition(), BEGIN_MS
    for host, sent, arrived_ms in hosts.arrivals():
        raw_partition.receive(host, sent, arrived_ms)
        ms = arrived_ms
    for host in HOSTS:
        raw_partition.receive(host, Sent(None, clock=NEVER_MS), ms)
    return raw_partition, {(host, entry.position) for host, entry in hosts.left()}


def check_kept(random: Random) -> None:
    """Check that within the limits it has exactly what the hosts have."""
    raw_partition, left = folded(random, KEPT)
    assert raw_partition.merged == left
    assert not raw_partition.lost


def check_broken(random: Random) -> None:
    """Beyond them it has nothing more, and each host with less is named."""
    raw_partition, left = folded(random, BROKEN)
    assert raw_partition.merged <= left
    assert {host for host, _ in left - raw_partition.merged} <= raw_partition.lost


@settings(max_examples=examples(100), deadline=None)
@given(st.randoms(use_true_random=False))
def test_within_the_limits_nothing_is_lost_and_nothing_stays(random: Random) -> None:
    check_kept(random)


@settings(max_examples=examples(100), deadline=None)
@given(st.randoms(use_true_random=False))
def test_beyond_the_limits_nothing_stays_and_what_is_lost_is_named(random: Random) -> None:
    check_broken(random)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("check", [check_kept, check_broken])
def test_many_histories(check: object) -> None:
    assert callable(check)
    for number in range(200_000):
        try:
            check(Random(number))
        except AssertionError as error:
            raise AssertionError(f"seed {number}") from error

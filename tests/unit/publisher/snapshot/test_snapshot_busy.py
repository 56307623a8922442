"""A busy node: by which signs it is, how far the rate of a snapshot falls, and how it rises again."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from cdc_common.errors.codes import CdcError, Code
from publisher.settings import PublisherSettings
from publisher.snapshot.connections import busy
from publisher.snapshot.connections.busy import BusyNode, LegacyNodeLoad, NodeLoad
from publisher.snapshot.connections.nodetool import Nodetool

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = PublisherSettings(
    snapshot_busy_load_per_core=2.0, snapshot_busy_waiting_requests=10, snapshot_busy_waiting_compactions=20
)
GONE = CdcError(Code.CASSANDRA_UNREACHABLE, "It is away.", "None.")
REFUSED = CdcError(Code.CASSANDRA_QUERY, "There is no such table.", "None.")


class Load(NodeLoad):
    """The present value of each sign; a CdcError for one that cannot be known."""

    def __init__(self) -> None:
        self.load = 0.0
        self.requests: int | CdcError | None = 0
        self.compactions: int | None = 0
        self.asked: list[str] = []

    def load_per_core(self) -> float:
        return self.load

    def waiting_requests(self) -> int | None:
        self.asked.append("requests")
        if isinstance(self.requests, CdcError):
            raise self.requests
        return self.requests

    def waiting_compactions(self) -> int | None:
        self.asked.append("compactions")
        return self.compactions


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(busy, "monotonic", lambda: now[0])
    return now


def looks(node: BusyNode, clock: list[float], count: int) -> list[float]:
    """The share after each of so many looks."""
    found = []
    for _ in range(count):
        clock[0] += busy.MEASURE_SECONDS
        found.append(node.measure_share())
    return found


def test_the_rate_is_halved_down_to_an_eighth_and_rises_again(clock: list[float]) -> None:
    load = Load()
    node = BusyNode(SETTINGS, load)
    assert looks(node, clock, 2) == [1.0, 1.0]
    assert node.problem == ""
    load.load = 2.5
    assert looks(node, clock, 4) == [0.5, 0.25, 0.125, 0.125]
    assert str(node.problem) == "the node is busy: its load is 2.5 for each core; 12% of the rate"
    load.load = 2.0
    assert looks(node, clock, 6) == [0.1875, 0.28125, 0.421875, 0.6328125, 0.94921875, 1.0]
    assert not node.problem


def test_it_looks_once_in_a_while(clock: list[float]) -> None:
    load = Load()
    load.requests = 11
    node = BusyNode(SETTINGS, load)
    assert [node.measure_share() for _ in range(3)] == [0.5] * 3
    clock[0] += busy.MEASURE_SECONDS
    assert node.measure_share() == 0.25
    assert load.asked == ["requests"] * 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"requests": 11}, "11 reads or writes wait for a thread"),
        ({"compactions": 21}, "21 compactions wait"),
        ({"requests": GONE}, "it does not answer"),
    ],
)
def test_each_sign_is_enough(clock: list[float], change: dict[str, Any], problem: str) -> None:
    load = Load()
    vars(load).update(change)
    node = BusyNode(SETTINGS, load)
    assert looks(node, clock, 1) == [0.5]
    assert problem in node.problem


@pytest.mark.parametrize("known", [{"requests": 10, "compactions": 20, "load": 2.0}, {"requests": None}])
def test_what_is_at_the_bound_or_not_known_is_no_sign(clock: list[float], known: dict[str, Any]) -> None:
    load = Load()
    vars(load).update(known)
    assert looks(BusyNode(SETTINGS, load), clock, 3) == [1.0] * 3


def test_a_bound_of_0_asks_for_nothing(clock: list[float]) -> None:
    load = Load()
    load.load, load.requests, load.compactions = 1e9, 10**9, 10**9
    own = PublisherSettings(
        snapshot_busy_load_per_core=0, snapshot_busy_waiting_requests=0, snapshot_busy_waiting_compactions=0
    )
    assert looks(BusyNode(own, load), clock, 3) == [1.0] * 3
    assert load.asked == []


def test_compactions_are_asked_for_once_a_minute(clock: list[float]) -> None:
    load = Load()
    load.compactions = 21
    node = BusyNode(SETTINGS, load)
    looks(node, clock, 12)
    assert load.asked.count("compactions") == 1
    load.compactions = 0
    assert looks(node, clock, 1)[-1] == busy.LEAST_SHARE * 1.5


def test_the_load_is_that_of_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (6.0, 1.0, 1.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert node_load(list).load_per_core() == 1.5


def node_load(
    rows: Callable[[], list[dict[str, Any]]], nodetool: str = "", kind: type[NodeLoad] = NodeLoad
) -> NodeLoad:
    """`rows`: of thread_pools. `nodetool`: what it prints, with the exit status 1 if it is empty."""
    client = type("Client", (), {"rows": staticmethod(lambda query: rows() if "thread_pools" in query else [])})
    program = f"import sys; print({nodetool!r}); sys.exit({not nodetool:d})"
    return kind(cast("Any", type("Link", (), {"client": client})), Nodetool([sys.executable, "-c", program]))


def test_only_reads_and_writes_count_among_the_thread_pools() -> None:
    waiting = {"ReadStage": 3, "MutationStage": 7, "CounterMutationStage": 1, "CompactionExecutor": 99}
    rows = [{"name": name, "pending_tasks": count} for name, count in waiting.items()]
    assert node_load(lambda: rows).waiting_requests() == 7


def test_what_cannot_be_known_is_none() -> None:
    def refuse() -> list[dict[str, Any]]:
        raise REFUSED

    def fail() -> list[dict[str, Any]]:
        raise GONE

    assert node_load(refuse).waiting_requests() is None
    assert node_load(list).waiting_compactions() is None
    assert node_load(list, "nothing of the kind").waiting_compactions() is None
    with pytest.raises(CdcError, match="It is away"):
        node_load(fail).waiting_requests()


COMPACTIONS = """pending tasks: 37
- ks.t: 37

"""
TABLE_OF_COMPACTIONS = """concurrent compactors             2
pending tasks                    37
ks                    t          37
compactions completed            12
"""
POOLS = """Pool Name                         Active   Pending      Completed   Blocked  All time blocked
ReadStage                              0         4            102         0                 0
CompactionExecutor                     2        50             12         0                 0
MutationStage                         32        40           1024         0                 0

Message type           Dropped
READ                         9
"""


def test_what_nodetool_prints() -> None:
    for printed in (COMPACTIONS, TABLE_OF_COMPACTIONS):
        assert node_load(list, printed).waiting_compactions() == 37
    assert node_load(list, POOLS, LegacyNodeLoad).waiting_requests() == 40


def test_cassandra_3_11_is_asked_by_nodetool_once_a_minute(clock: list[float]) -> None:
    class Counting(Nodetool):
        calls = 0

        def waiting_tasks(self) -> dict[str, int]:
            self.calls += 1
            return {"ReadStage": self.calls}

    nodetool = Counting([])
    load = LegacyNodeLoad(cast("Any", None), nodetool)
    assert [load.waiting_requests() for _ in range(3)] == [1] * 3
    clock[0] += busy.NODETOOL_SECONDS
    assert load.waiting_requests() == 2

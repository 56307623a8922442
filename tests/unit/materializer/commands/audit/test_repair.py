"""`audit --repair`: what is asked of the publishers, and when it counts as done."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import NO_HOST, RepairRequest, parse_repair
from materializer.commands.audit import repair as repair_module
from materializer.commands.audit.plan import AuditOptions
from materializer.commands.audit.repair import KEYS_AT_ONCE, Outcome, Repair, RepairLook
from materializer.commands.audit.report import Report
from tests.support.materializer.audited import make_plan
from tests.support.materializer.raw_builder import TABLE, int_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ONE, TWO, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


class Cluster:
    """A client of a cluster of two nodes in one datacenter, and one in another, and the job's tasks.

    ends: how each node's part ends, by the number of the request. outcome: of each Cassandra partition in the states.
    """

    def __init__(self, ends: dict[UUID, str], outcome: Outcome = "done") -> None:
        self.ends = ends
        self.outcome = outcome
        self.requests: list[RepairRequest] = []
        self.parts: list[dict[str, Any]] = []
        self.looks: list[RepairLook] = []

    def rows(self, query: str, _values: Sequence[object] = ()) -> list[dict[str, Any]]:
        if "system.local" in query:
            return [{"host_id": ONE, "data_center": "dc1"}]
        if "system.peers" in query:
            return [{"host_id": TWO, "data_center": "dc1"}, {"host_id": OTHER, "data_center": "dc2"}]
        asked = self.parts[-1]
        return [asked, *({**asked, "host_id": host, "state": state} for host, state in self.ends.items())]

    def write(self, query: str, values: Sequence[object]) -> None:
        names = query.partition("(")[2].partition(")")[0].split(", ")
        part: dict[str, Any] = dict(zip(names, values, strict=True))
        request = parse_repair(part["portion"])
        assert request is not None
        assert (part["host_id"], part["table_id"], part["hosts"]) == (NO_HOST, TABLE.id, {ONE, TWO})
        self.parts.append(part)
        self.requests.append(request)

    def run(self, _work: Callable[[Any], Any], looks: Sequence[RepairLook]) -> list[dict[bytes, Outcome]]:
        self.looks += looks
        return [dict.fromkeys(look.keys, self.outcome) for look in looks]


def repaired(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, count: int = 1, *, seconds: float = 60.0, as_json: bool = True
) -> int:
    @contextmanager
    def connect(*_: object) -> Iterator[Cluster]:
        yield cluster

    monkeypatch.setattr(repair_module, "_connect_to_one", connect)
    monkeypatch.setattr(repair_module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(repair_module, "_SETTLE_SECONDS", 0.02)
    plan = make_plan(AuditOptions(repair=True, repair_seconds=seconds))
    report = Report(plan.table(), as_json=as_json)
    keys = [int_bytes(number) for number in range(count)]
    return Repair(plan, cluster, report).run(keys)  # type: ignore[arg-type]


def test_partitions_are_repaired_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({ONE: "ended", TWO: "ended"})
    count = KEYS_AT_ONCE + 1
    assert repaired(cluster, monkeypatch, count) == count
    assert [len(request.keys) for request in cluster.requests] == [KEYS_AT_ONCE, 1]
    assert all(request.until_ms > time.time() * 1000 for request in cluster.requests)
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["key"]["k"] for line in found if line["replaced"]] == list(range(count))
    looked = {(look.repair, key) for look in cluster.looks for key in look.keys}
    assert len(looked) == count
    assert {look.repair for look in cluster.looks} == {part["snapshot"] for part in cluster.parts}


@pytest.mark.parametrize(
    ("ends", "outcome", "missing"),
    [
        ({ONE: "ended", TWO: "given_up"}, "failed", True),
        ({ONE: "ended"}, "open", True),  # the time is over
        ({ONE: "ended", TWO: "ended"}, "failed", False),
        ({ONE: "ended", TWO: "ended"}, "unknown", False),
    ],
)
def test_what_is_not_replaced_is_said(
    ends: dict[UUID, str],
    outcome: Outcome,
    missing: bool,  # noqa: FBT001 - a case
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert repaired(Cluster(ends, outcome), monkeypatch, seconds=0.1, as_json=False) == 0
    said = capsys.readouterr()
    assert "not repaired k=0 (token" in said.out
    assert (str(TWO) in said.err) == missing


def test_the_first_node_that_answers_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    @contextmanager
    def connect(_settings: object, only: str) -> Iterator[str]:
        asked.append(only)
        if only == "10.0.0.1":
            raise CdcError(Code.CASSANDRA_UNREACHABLE, "It is away.", "None.")
        yield only

    monkeypatch.setattr(repair_module, "connect", connect)
    settings = make_plan().settings
    for points, found in (
        (["10.0.0.1", "10.0.0.2", "10.0.0.3"], "10.0.0.2"),
        (["10.0.0.1", "10.0.0.3"], "10.0.0.3"),
        (["10.0.0.3"], "10.0.0.3"),
    ):
        given = settings.model_copy(
            update={"cassandra": settings.cassandra.model_copy(update={"contact_points": points})}
        )
        with repair_module._connect_to_one(given) as client:
            assert str(client) == found
    assert asked == ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.3"]

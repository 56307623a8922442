"""Whatever the hosts of a datacenter are asked, and whenever they are killed or away: each ends what all wait for."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from publisher.snapshot import supervisor as supervisor_module
from publisher.snapshot.state.records import new_record
from tests.support.publisher.snapshot_hosts import NAME, TABLE, Host, Rows, Worker

if TYPE_CHECKING:
    from publisher.snapshot.state.cluster import PartState

STATES: dict[str, PartState] = {"begin": "running", "end": "ended", "give_up": "given_up"}
HOSTS = tuple(UUID(int=number) for number in (1, 2, 3))
AWAY = CdcError(Code.CASSANDRA_UNREACHABLE, "no node answers", "none")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "begin", "follow", "end", "give_up", "restart", "away", "back"]), st.integers(0, 2)
    ),
    max_size=40,
)


class Datacenter:
    """`asked`: all snapshots that were asked for. `begun`: those that a raw partition has heard of. `ended`: the ends
    that the raw partitions have, (snapshot, host).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.rows = Rows()
        self.asked: set[UUID] = set()
        self.begun: set[UUID] = set()
        self.ended: set[tuple[UUID, UUID]] = set()
        self.hosts = [self._host(number) for number in range(3)]

    def _host(self, number: int) -> Host:
        return Host(self._folder / str(number), self.rows, HOSTS[number])

    def take(self, step: str, number: int) -> None:
        host = self.hosts[number]
        if step == "ask":
            record = new_record(TABLE.table, hosts=HOSTS)
            if host.records.begin(record):
                self.asked.add(record.snapshot)
        elif step == "follow":
            host.begin_due()
        elif step in {"begin", "end", "give_up"}:
            with suppress(CdcError):  # the next worker tries again
                self._work(number, STATES[step])
        elif step == "restart":
            self.hosts[number] = self._host(number)
        else:
            self.rows.refusal = AWAY if step == "away" else None

    def _work(self, number: int, state: PartState) -> None:
        host = self.hosts[number]
        record = host.records.read(NAME)
        if record is None or record.is_final:
            return
        host.tell("running" if state == "ended" else state)
        self.begun.add(record.snapshot)
        if state != "running":
            self.ended.add((record.snapshot, HOSTS[number]))
            host.end(state)

    def settle(self) -> None:
        self.rows.refusal = None
        for _ in range(2 * len(self.asked) + 2):
            for number in range(3):
                self.take("follow", number)
                self.take("end", number)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_every_host_ends_every_snapshot_that_is_known_to_it(steps: list[tuple[str, int]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(supervisor_module, "_Process", lambda _settings, name: Worker(name)),
    ):
        datacenter = Datacenter(Path(folder))
        for step, number in steps:
            datacenter.take(step, number)
        datacenter.settle()
        known = {snapshot for snapshot, _ in datacenter.rows.rows}
        assert known >= datacenter.begun
        assert datacenter.ended >= {(snapshot, host) for snapshot in known for host in HOSTS}
        states = {row["state"] for row in datacenter.rows.rows.values()}
        assert states <= {"ended", "given_up", "running"}
        before = datacenter.ended.copy()
        datacenter.settle()
        assert datacenter.ended == before

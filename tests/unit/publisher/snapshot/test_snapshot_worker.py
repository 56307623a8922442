"""The publisher gives orders to its worker through their pipe."""

from __future__ import annotations

from multiprocessing import Pipe
from typing import TYPE_CHECKING

import pytest

from publisher.settings import PublisherSettings, Settings
from publisher.snapshot.state.records import Records, new_record
from publisher.snapshot.steps import worker
from publisher.snapshot.steps.worker import (
    CANCEL,
    GO_ON,
    PAUSE,
    CancelledError,
    Orders,
    PausedError,
    StoppedError,
)
from tests.support.materializer.table_writes import MIXED

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> tuple[Connection, Orders]:
    monkeypatch.setattr(worker, "_HOLD_SECONDS", 0.0)
    ours, theirs = Pipe()
    return ours, Orders(theirs)


def test_a_worker_that_is_held_checks_its_disk_until_it_may_go_on(pipe: tuple[Connection, Orders]) -> None:
    ours, orders = pipe
    checks: list[int] = []

    def check_disk() -> None:
        checks.append(len(checks))
        if len(checks) == 3:
            ours.send(GO_ON)

    orders.while_held = check_disk
    orders.serve()
    assert checks == []
    ours.send("cdc_raw is 60 % full")
    orders.serve()
    assert checks == [0, 1, 2]


@pytest.mark.parametrize(("order", "error"), [(PAUSE, PausedError), (CANCEL, CancelledError)])
def test_what_is_left_to_do_after_an_order_is_not_held_up(
    pipe: tuple[Connection, Orders], order: str, error: type[Exception]
) -> None:
    ours, orders = pipe
    ours.send(order)
    with pytest.raises(error):
        orders.serve()
    orders.serve()


def test_a_worker_waits_for_that_of_a_killed_publisher(pipe: tuple[Connection, Orders], tmp_path: Path) -> None:
    """It may be in nodetool for minutes, and then write the record of its snapshot."""
    ours, orders = pipe
    records = Records(tmp_path)
    records.make_folder()
    records.begin(new_record(MIXED.table))
    before = records.read(MIXED.table.qualified_name)
    settings = Settings(publisher=PublisherSettings.model_validate({"state_directory": tmp_path}))
    ours.send("cdc_raw is 60 % full")
    orders.while_held = ours.close  # while it waits
    with records.as_worker(lambda: None):
        worker._run(settings, MIXED.table.qualified_name, orders)
    assert records.read(MIXED.table.qualified_name) == before


def test_a_worker_stops_without_its_publisher(pipe: tuple[Connection, Orders]) -> None:
    ours, orders = pipe
    ours.close()
    with pytest.raises(StoppedError) as raised:
        orders.serve()
    assert not isinstance(raised.value, PausedError)  # its links stay for the next one

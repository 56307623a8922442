"""One bad raw partition never stops another: eight tables under load, and three of them break."""

from __future__ import annotations

import itertools
import json
import os
import time
from typing import TYPE_CHECKING

import click
import pytest

from cdc_common.errors.codes import Code
from dev.local_stack.process.processes import wait_until
from tests.support.http_get import get
from tests.support.materializer.eight_tables import (
    DAMAGED,
    FAILING,
    LARGE,
    LARGE_BYTES,
    NAMES,
    OTHERS,
    WAIT_SECONDS,
    EightTables,
)
from tests.support.materializer.failing_run import MUTANT, SECRET
from tests.support.materializer.job_mutants import STOP_ALL_ON_ONE
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600), pytest.mark.exhaustive]
PHASE_SECONDS = 20.0 if os.environ.get("CDC_EXHAUSTIVE") else 4.0  # the longer, the better the figures of latency
CODES = {LARGE: Code.MESSAGE_TOO_LARGE.text, DAMAGED: Code.STATE_DAMAGED.text, FAILING: Code.UNEXPECTED.text}


@pytest.fixture
def scene(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Iterator[EightTables]:
    registry = Registry(tmp_path / "registry.db").start()
    made = EightTables(kafka.bootstrap_servers, topic_prefix, registry.url, tmp_path)
    try:
        yield made
    finally:
        made.stop()
        registry.stop()


def check_three_stop_and_five_go_on(scene: EightTables) -> tuple[float, float]:
    """When three tables break, status names them, and the others' changes come. The beginning and end of that time."""
    broken_at = time.time()
    scene.break_three()
    wait_until(lambda: scene.job.is_running and scene.stopped() == CODES, "three stops", WAIT_SECONDS)
    time.sleep(max(0.0, broken_at + PHASE_SECONDS - time.time()))
    before = {name: len(scene.received[name]) for name in OTHERS}
    wait_until(lambda: all(len(scene.received[name]) > before[name] for name in OTHERS), "more changes", WAIT_SECONDS)
    assert scene.stopped() == CODES
    return broken_at, time.time()


def test_three_of_eight_tables_break_and_five_notice_nothing(scene: EightTables) -> None:
    scene.start()
    time.sleep(5.0)
    wait_until(lambda: scene.stopped() == {}, "a start without a stop", WAIT_SECONDS)
    begun = time.time()
    time.sleep(PHASE_SECONDS)
    broken, repaired = check_three_stop_and_five_go_on(scene)
    check_status(scene)
    check_log(scene)
    scene.repair_three()
    assert scene.command("retry")[0] == 0
    wait_until(lambda: scene.stopped() == {}, "the end of three stops", WAIT_SECONDS)
    assert scene.command("status")[0] == 0
    scene.write(LARGE, "small again")
    scene.finish()
    check_all_changes(scene)
    show_latencies(scene, begun, broken, repaired)
    assert scene.job.output().count("raw partition resumed") >= len(CODES)


def check_status(scene: EightTables) -> None:
    exit_status, shown = scene.command("status")
    assert exit_status == 4
    for name in NAMES:
        assert (f"{scene.raw(name)}  " in shown) == (name in CODES), shown
    assert "5 of 8 raw partitions work; 3 are stopped" in shown
    stops = json.loads(scene.command("status", "--json")[1])["stopped"]
    assert all(stop["lag"] > 0 and 100 < stop["hours_left"] <= 168 for stop in stops)  # the broker's 7 days
    metrics = get(scene.port, "/metrics")[1]
    for name, code in CODES.items():
        labels = f'code="{code}",partition="0",topic="{scene.raw(name).topic}"'
        assert f"cdc_materializer_stopped_seconds{{{labels}}}" in metrics
    assert metrics.count("cdc_materializer_retention_seconds_left{") == len(CODES)


def check_log(scene: EightTables) -> None:
    """The driver's log has the trace of the exception once, and no row's value."""
    lines = [json.loads(line) for line in scene.job.output().splitlines() if line.startswith("{")]
    [stop] = [line for line in lines if line.get("code") == Code.UNEXPECTED.text]
    assert stop["event"] == "raw partition stopped"
    assert "failing_run.py" in stop["trace"]
    assert stop["trace"].endswith("KeyError")
    assert f"{scene.raw(FAILING)} at offset " in stop["raw_partitions"][0]
    assert SECRET not in scene.job.output()


def check_all_changes(scene: EightTables) -> None:
    """Each write of each table is one change, in order, and each change continues the one before."""
    for name in NAMES:
        changes = [received.change for received in scene.received[name]]
        assert len(changes) == scene.sent[name]
        assert all(later["before"] == earlier["after"] for earlier, later in itertools.pairwise(changes))
        texts = [change["after"]["a"] for change in changes]
        numbers = [text if text.isdigit() and len(text) < 9 else str(at) for at, text in enumerate(texts)]
        assert numbers == [str(at) for at in range(len(texts))]
        assert sum(len(text) == LARGE_BYTES for text in texts) == (name == LARGE)


def show_latencies(scene: EightTables, begun: float, broken: float, repaired: float) -> None:
    """Print the times from a write to its change side by side: before, and while three are stopped."""
    click.echo(f"\n{'':<6}{'before':>24}{'while three are stopped':>32}")
    click.echo(f"{'':<6}{'changes':>8}{'p50':>8}{'p99 ms':>8}{'changes':>16}{'p50':>8}{'p99 ms':>8}")
    for names in (*((name,) for name in OTHERS), OTHERS):
        before, during = (
            sorted(
                1000 * change.latency
                for name in names
                for change in scene.received[name]
                if first <= change.at - change.latency < last
            )
            for first, last in ((begun, broken), (broken, repaired))
        )
        row = [value for found in (before, during) for value in (len(found), at(found, 0.5), at(found, 0.99))]
        click.echo("{:<6}{:8}{:8.0f}{:8.0f}{:16}{:8.0f}{:8.0f}".format("all" if len(names) > 1 else names[0], *row))


def at(latencies: list[float], share: float) -> float:
    return latencies[int(share * len(latencies))]


def test_a_job_that_stops_all_on_one_is_noticed(scene: EightTables) -> None:
    scene.job.environment[MUTANT] = STOP_ALL_ON_ONE
    scene.start()
    scene.break_three()
    wait_until(lambda: not scene.job.is_running, "the end of the job", WAIT_SECONDS)
    with pytest.raises(OSError, match="refused"):
        scene.stopped()  # no server answers: the check above would fail

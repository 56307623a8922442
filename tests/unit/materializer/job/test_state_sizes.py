"""How large the states are, as metrics and in the status."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from cdc_common.program.metrics import Collected
from materializer.job.state_sizes import StateSizes, text
from stream_runtime.exactly_once.report import NOTHING_DONE, Report, StateReport
from stream_runtime.state.unused import DiskUse
from stream_runtime.worker.task import TaskResult
from tests.support.stream_runtime.shares import share

A, B = share("a", 0), share("a", 1)
MIB = 1 << 20
HERE, THERE = DiskUse("here:/x", 3 * MIB, MIB, 90 * MIB), DiskUse("there:/x", 2 * MIB, 0, 80 * MIB)


class Scene:
    def __init__(self) -> None:
        self.now = 0.0
        self.sizes = StateSizes(lambda: self.now)

    def count(self, **reports: Report) -> None:
        found = {"a": A, "b": B}
        self.sizes.count_batch([TaskResult(found[name], report, None) for name, report in reports.items()])

    def metrics(self) -> set[str]:
        registry = CollectorRegistry()
        registry.register(Collected(self.sizes.metrics))
        return {line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")}


def test_metrics() -> None:
    scene = Scene()
    folded = NOTHING_DONE._replace(chunks=1, state=StateReport(100, read=5, written=7, restores=1))
    scene.count(
        a=folded._replace(state=folded.state._replace(disk=DiskUse("here:/x", 30, 10, 900))),
        b=folded._replace(state=folded.state._replace(bytes=50)),
    )
    scene.count(a=NOTHING_DONE._replace(state=StateReport(read=1)))  # folded nothing: its state is as large as before
    assert scene.metrics() == {
        "cdc_materializer_checkpoint_read_bytes_total 11.0",
        "cdc_materializer_checkpoint_written_bytes_total 14.0",
        "cdc_materializer_restores_total 2.0",
        'cdc_materializer_state_bytes{topic="a"} 150.0',
        'cdc_materializer_local_state_bytes{kind="used",machine="here:/x"} 30.0',
        'cdc_materializer_local_state_bytes{kind="unused",machine="here:/x"} 10.0',
        'cdc_materializer_local_state_bytes{kind="free",machine="here:/x"} 900.0',
    }
    scene.sizes.forget_all_but([A])
    assert 'cdc_materializer_state_bytes{topic="a"} 100.0' in scene.metrics()


def test_a_machine_without_workers_is_forgotten() -> None:
    scene = Scene()
    scene.count(
        a=NOTHING_DONE._replace(state=StateReport(disk=HERE)), b=NOTHING_DONE._replace(state=StateReport(disk=THERE))
    )
    assert scene.sizes.as_json() == [HERE._asdict(), THERE._asdict()]
    scene.now = 3000.0
    scene.count(a=NOTHING_DONE._replace(state=StateReport(disk=HERE._replace(used=5))))
    scene.now = 4000.0
    assert scene.sizes.as_json() == [HERE._replace(used=5)._asdict()]


def test_text_names_the_fullest_machine() -> None:
    assert text([HERE._asdict(), THERE._asdict()]) == (
        "local states take 5.0 MiB, and 1.0 MiB of raw partitions that have moved away; at least 80.0 MiB are free "
        "(there:/x)"
    )

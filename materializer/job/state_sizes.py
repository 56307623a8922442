"""Report the sizes of states, on the workers' disks and in traffic with the checkpoint location, as metrics."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from prometheus_client.core import GaugeMetricFamily

from cdc_common.program.metrics import as_size, counters

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from stream_runtime.records import Share
    from stream_runtime.state.unused import DiskUse
    from stream_runtime.worker.task import TaskResult

_PREFIX = "cdc_materializer"
_GONE_SECONDS = 3600.0  # without a word of a machine, after which it has no worker any more


class StateSizes:
    """Filled by the driver, read by other threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._states: dict[Share, int] = {}
        self._disks: dict[str, tuple[float, DiskUse]] = {}
        self._read = self._written = self._restores = 0

    def forget_all_but(self, shares: Collection[Share]) -> None:
        """Forget raw partitions whose topic was deleted."""
        for gone in self._states.keys() - set(shares):
            self._states.pop(gone)

    def count_batch(self, results: Sequence[TaskResult]) -> None:
        for result in results:
            if (report := result.report) is not None:
                self._read += report.state.read
                self._written += report.state.written
                self._restores += report.state.restores
                if report.chunks:
                    self._states[result.share] = report.state.bytes
                if report.state.disk is not None:
                    self._disks[report.state.disk.machine] = self._clock(), report.state.disk

    def disks(self) -> list[DiskUse]:
        """The disk use of each machine that has workers."""
        now = self._clock()
        return [disk for heard, disk in list(self._disks.values()) if now - heard < _GONE_SECONDS]

    def as_json(self) -> list[dict[str, Any]]:
        return [disk._asdict() for disk in self.disks()]

    def metrics(self) -> Iterator[Metric]:
        yield from counters(
            _PREFIX,
            (
                ("checkpoint_read_bytes", "Data read from the checkpoint location.", self._read),
                ("checkpoint_written_bytes", "Data written to the checkpoint location.", self._written),
                (
                    "restores",
                    "Times that a local state was restored to the committed version before a fold.",
                    self._restores,
                ),
            ),
        )
        sizes = Counter[str]()
        for share, size in list(self._states.items()):
            sizes[share.stream] += size
        states = GaugeMetricFamily(
            f"{_PREFIX}_state_bytes", "Size of the local states of the topic.", labels=("topic",)
        )
        for topic, size in sizes.items():
            states.add_metric((topic,), size)
        yield states
        disks = GaugeMetricFamily(
            f"{_PREFIX}_local_state_bytes",
            "Disk space of the local states on a machine: used, unused (of raw partitions that moved away), and free.",
            labels=("machine", "kind"),
        )
        for disk in self.disks():
            for kind, size in (("used", disk.used), ("unused", disk.unused), ("free", disk.free)):
                disks.add_metric((disk.machine, kind), size)
        yield disks


def text(disks: Sequence[dict[str, Any]]) -> str:
    """StateSizes.as_json, which has at least one machine, as a line."""
    used, unused = sum(disk["used"] for disk in disks), sum(disk["unused"] for disk in disks)
    least = min(disks, key=lambda disk: disk["free"])
    return (
        f"local states take {as_size(used)}, and {as_size(unused)} of raw partitions that have moved away; at least "
        f"{as_size(least['free'])} are free ({least['machine']})"
    )

"""Each batch reports the open shares, and how long each has worked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from archive.job.share_report import ShareReport, open_report
from archive.job.worker_loop import ArchiveLoop
from archive.writer.report import CutReport
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.records import Share, SourcePartition
from stream_runtime.worker.task import Assignment

if TYPE_CHECKING:
    from archive.job.open_archives import OpenArchives
    from archive.job.plan import ArchivePlan
    from stream_runtime.exactly_once.report import Report

FIRST, SECOND = (Share.of(SourcePartition("cdc.shop.orders", number)) for number in (0, 1))


class Archives:
    """Shares that are open, and have worked for a second."""

    shares = frozenset({FIRST, SECOND})

    def keep(self, _plan: object, _assignment: Assignment) -> None: ...

    def read(self, _most: int, _seconds: float) -> list[object]:
        return []

    def report_open(self, _share: Share) -> Report:
        return NOTHING_DONE._replace(seconds=1.0, own=ShareReport(open_files=3))


def test_a_share_that_is_tried_again_has_no_report_of_what_is_open() -> None:
    loop = ArchiveLoop(cast("OpenArchives", Archives()), 100)
    plan = cast("ArchivePlan", None)
    results = loop.run_batch(plan, Assignment((FIRST, SECOND), 10, 0.0, (SECOND,)))
    assert [(result.share, result.report and result.report.seconds) for result in results] == [(FIRST, 1.0)]


def test_reports_of_a_batch_add_cuts_and_keep_what_is_open_last() -> None:
    both = ShareReport(CutReport(cuts=1, rows=5), 7).and_then(ShareReport(CutReport(cuts=1, rows=2), 0, "host:1", 9))
    assert both == ShareReport(CutReport(cuts=2, rows=7), 0, "host:1", 9)


def test_a_report_names_this_process_and_its_memory() -> None:
    report = open_report(2)
    assert report.open_files == 2
    assert 1_000_000 < report.memory < 10_000_000_000
    assert report.worker == open_report(0).worker

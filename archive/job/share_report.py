"""The report of a share to the driver: its cuts, what is open, and the worker that has it."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import NamedTuple

from archive.writer.report import CutReport

_STATM = Path("/proc/self/statm")  # in pages; the second number is the resident memory


class ShareReport(NamedTuple):
    """The part of a report (stream_runtime.exactly_once.report.Part)."""

    # The counts of the cuts that were committed.
    cuts: CutReport = CutReport()
    # The number of files that the open cut has so far.
    open_files: int = 0
    # The name of the worker; empty if the report does not say.
    worker: str = ""
    # The resident memory of the worker in bytes.
    memory: int = 0

    def and_then(self, later: ShareReport) -> ShareReport:
        """Both, one after the other."""
        return later._replace(cuts=self.cuts.and_then(later.cuts))


@cache
def worker_name(pid: int) -> str:
    """The name of a process of this host."""
    return f"{socket.gethostname()}:{pid}"


def open_report(open_files: int) -> ShareReport:
    """A report about an open share of this process."""
    memory = int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return ShareReport(open_files=open_files, worker=worker_name(os.getpid()), memory=memory)

"""Spark's planner process, in which the data source asks for rounds."""

from __future__ import annotations

import subprocess
import sys

_PLANNER = """
import sys
from stream_runtime.query.data_source import RoundReader
from stream_runtime.query.rounds import ServiceAddress

reader = RoundReader(ServiceAddress("127.0.0.1", 1, b""))
print("before", file=sys.stderr, flush=True)
reader.stop()
raise EOFError  # as Spark's runner does when its JVM has closed the socket
"""


def test_a_planner_that_ends_prints_no_trace() -> None:
    ended = subprocess.run([sys.executable, "-c", _PLANNER], stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert ended.stderr == b"before\n"

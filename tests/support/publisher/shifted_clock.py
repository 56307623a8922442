"""`python -m tests.support.publisher.shifted_clock FILE MODULE ARGUMENT…`: runs a program with a shifted wall clock.

The clock is ahead of the machine's by as many seconds as FILE says at each moment. The monotonic clock is unchanged, as
when an operator sets the time.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path


def shift(file: Path) -> None:
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + float(file.read_text())
    time.time_ns = lambda: true_time_ns() + int(float(file.read_text()) * 1e9)


if __name__ == "__main__":
    shift(Path(sys.argv.pop(1)))
    sys.argv.pop(0)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)

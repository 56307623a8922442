"""`python -m tests.publisher.shifted_clock FILE MODULE ARGUMENT…`: a program whose wall clock is ahead of the machine's
by as many seconds as FILE says at each moment; the monotonic clock goes on as it does when an operator sets the time.
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

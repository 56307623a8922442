"""`make verify WHAT=fuzz`: damaged bytes into every reader, and only FormatError may come out.

Each target takes an equal part of FUZZ_RUNS, FUZZ_SHARE percent of it chosen by libFuzzer for new coverage (atheris),
the rest by mutate.py from the target's seeds. FUZZ_SEED starts another series, FUZZ_TARGETS names the targets. What a
target could not take stays in .run/fuzz/, and the exit code is 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import click

from dev.verify.fuzz.targets import TARGETS

RUNS = int(os.environ.get("FUZZ_RUNS", "1000000"))
SHARE = int(os.environ.get("FUZZ_SHARE", "10"))
JOBS = int(os.environ.get("FUZZ_JOBS", str(os.cpu_count() or 1)))


def run(target: str) -> int:
    """A child for each: what one keeps or crashes is not another's."""
    part = RUNS // len(CHOSEN)
    covered = part * SHARE // 100
    codes = [
        subprocess.run([sys.executable, "-m", f"dev.verify.fuzz.{how}", target, str(count)], check=False).returncode
        for how, count in (("run_seeded", part - covered), ("run_covered", covered))
        if count
    ]
    return max(map(abs, codes))


CHOSEN = os.environ.get("FUZZ_TARGETS", ",".join(TARGETS)).split(",")

with ThreadPoolExecutor(JOBS) as pool:
    failed = [target for target, code in zip(CHOSEN, pool.map(run, CHOSEN), strict=True) if code]
click.echo(
    f"{RUNS} damaged inputs to {len(CHOSEN)} readers: "
    + (f"FAILED: {', '.join(failed)}" if failed else "only FormatError came out")
)
sys.exit(bool(failed))

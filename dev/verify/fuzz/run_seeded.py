"""`python -m dev.verify.fuzz.run_seeded TARGET RUNS`: seeds damaged by mutate.py. A FILE for RUNS: that one input."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from dev.verify.fuzz.mutate import mutated
from dev.verify.fuzz.targets import TARGETS
from dev.verify.fuzz.watch import Watch


def main(name: str, runs: str) -> None:
    target = TARGETS[name]()
    if not runs.isdigit():
        target.run(Path(runs).read_bytes())
        return
    rng = random.Random(f"{os.environ.get('FUZZ_SEED', '0')} {name}")
    watch = Watch(name, target, int(runs))
    assert sum(map(target.run, target.seeds)) * 3 >= len(target.seeds), "the seeds are none"
    for _ in range(int(runs)):
        watch(mutated(rng, rng.choice(target.seeds), target.seeds))
    watch.report("seeded: done")


main(*sys.argv[1:])

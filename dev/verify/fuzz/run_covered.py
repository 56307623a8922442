"""`python -m dev.verify.fuzz.run_covered TARGET RUNS`: inputs that libFuzzer chooses because they reach new code."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["cassandra_storage", "cdc_common.messages.avro"]):
    from dev.verify.fuzz.targets import TARGETS

from dev.verify.fuzz.mutate import mutated
from dev.verify.fuzz.watch import Watch


def main(name: str, runs: str) -> None:
    target = TARGETS[name]()
    watch = Watch(name, target, int(runs))

    def mutate(data: bytes, largest: int, seed: int) -> bytes:
        """Half of the time ours, which know lengths; otherwise libFuzzer's own, which know what was compared."""
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return mutated(rng, data, target.seeds)[:largest]
        found: bytes = atheris.Mutate(data, largest)
        return found

    def one(data: bytes) -> None:
        watch(data)
        if watch.inputs == int(runs):  # libFuzzer ends the process, so the last word is here
            watch.report("coverage-guided: done")

    with tempfile.TemporaryDirectory(prefix="fuzz-") as corpus:
        for number, seed in enumerate(target.seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        options = [f"-runs={runs}", "-max_len=4096", "-rss_limit_mb=0", f"-seed={os.environ.get('FUZZ_SEED', '1')}"]
        quiet = ["-verbosity=0", "-print_final_stats=0"]
        atheris.Setup([sys.argv[0], *options, *quiet, corpus], one, custom_mutator=mutate)
        atheris.Fuzz()


main(*sys.argv[1:])

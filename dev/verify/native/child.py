"""`python -m dev.verify.native.child SEED FIRST SECONDS TARGET…`: cases of each target from the number FIRST on.

With SECONDS 0: the one case FIRST of each. Its last line is JSON: the counts of each target. The file `case` beside the
compiled package names the case that runs, for one that ends the process.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

import cdc_native.fold.fold as core
from dev.verify.native.build import STAMP
from dev.verify.native.targets import TARGETS
from tests.support.materializer.both_folds import Counts

if TYPE_CHECKING:
    from types import FrameType

FOLDER = Path(core.__file__).parents[2]
FOUND = 1
_HANGS = 120  # s


def main(seed: str, first: int, seconds: float, names: list[str]) -> None:
    assert (FOLDER / STAMP).exists(), f"{core.__file__} has no sanitizers"
    signal.signal(signal.SIGALRM, _hang)
    with tempfile.TemporaryDirectory() as folder:
        targets = {name: TARGETS[name](Path(folder)) for name in names}
    counts = {name: Counts() for name in names}
    cases = dict.fromkeys(names, 0)
    spent = dict.fromkeys(names, 0.0)
    ends = time.monotonic() + seconds
    with (FOLDER / "case").open("wb", buffering=0) as file:
        while time.monotonic() < ends or not all(cases.values()):
            name = min(names, key=spent.__getitem__)
            number = first + cases[name]
            os.pwrite(file.fileno(), f"{name} {number}".ljust(60).encode(), 0)
            started = time.monotonic()
            signal.alarm(_HANGS)
            try:
                targets[name](random.Random(f"{seed} {name} {number}"), counts[name])
            except BaseException:  # noqa: BLE001 - a difference, or what no target may raise
                traceback.print_exc()
                sys.exit(FOUND)
            signal.alarm(0)
            spent[name] += time.monotonic() - started
            cases[name] += 1
    found = {
        name: {"cases": cases[name], "inputs": counts[name].records, "taken": counts[name].native, "s": spent[name]}
        for name in names
    }
    click.echo(json.dumps(found))


def _hang(_: int, __: FrameType | None) -> NoReturn:
    raise TimeoutError(f"a case takes more than {_HANGS} s")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])

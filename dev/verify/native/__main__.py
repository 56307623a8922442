"""`make verify WHAT=native`: damaged input for the native core, compiled with AddressSanitizer.

Exit code 1 if the core reads or writes outside its memory, or differs from the Python code. With DEFECT=all a check is
left out of the core at a time; exit code 1 if that is not found.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import click

from dev.verify.native.build import DEFECTS, build, environment

if TYPE_CHECKING:
    from pathlib import Path

_TARGETS = "segments,mutations,offsets,sstables,messages,chunks,states,values,changelogs,avro,routes,joins,shapes"
_DEFECT_SECONDS = 60.0  # within which a defect must be found


class Found(NamedTuple):
    """The end of a process, and the case that it ran."""

    # The name of the target.
    target: str
    # The number of the case.
    case: int
    # The exit code of the process.
    exit_code: int
    # The output of the process.
    output: str


@click.command()
@click.option("--seed", default="1", help="Another series of cases.")
@click.option("--minutes", default=10.0, help="How long to run, without the build.")
@click.option("--slice", "slice_minutes", default=4.0, help="Minutes after which a new process goes on.")
@click.option("--targets", default=_TARGETS, help="Separated by commas.")
@click.option("--case", "number", type=int, help="Only this case of each target.")
@click.option("--first", default=0, help="The number of the first case.")
@click.option("--defect", type=click.Choice([*DEFECTS, "all"]), help="Seed a defect, which must be found.")
def main(
    seed: str, minutes: float, slice_minutes: float, targets: str, number: int | None, first: int, defect: str | None
) -> None:
    """Feed damaged input to the native core, which is compiled with AddressSanitizer."""
    names = targets.split(",")
    if defect is not None:
        for name in DEFECTS if defect == "all" else (defect,):
            find(name, seed, names)
        return
    click.echo("compiling the core with sanitizers", err=True)
    folder = build()
    if number is not None:
        counts_of(run(folder, seed, number, 0, names), seed)
        return
    sums = {name: dict.fromkeys(("cases", "inputs", "taken", "s"), 0.0) for name in names}
    left = minutes * 60
    while left > 0:
        started = time.monotonic()
        found = counts_of(run(folder, seed, first, min(left, slice_minutes * 60), names), seed)
        left -= time.monotonic() - started
        for name, counts in found.items():
            for key, count in counts.items():
                sums[name][key] += count
        first += 1 + int(max(counts["cases"] for counts in found.values()))
        click.echo(table(sums, seed))
    click.echo(f"seed {seed}: nothing was found; the next case is {first}")


def find(defect: str, seed: str, names: list[str]) -> None:
    """Exits if the defect is not found."""
    click.echo(f"compiling the core with the defect {defect}", err=True)
    started = time.monotonic()
    found = run(build(defect), seed, 0, _DEFECT_SECONDS, names)
    if not isinstance(found, Found):
        raise SystemExit(f"The defect {defect} was NOT found in {_DEFECT_SECONDS:.0f} s.")
    what = next((line.strip() for line in found.output.splitlines() if "ERROR: " in line), "no error of a sanitizer")
    click.echo(f"{defect}: found in {found.target}, case {found.case} ({time.monotonic() - started:.0f} s): {what}")
    if "AddressSanitizer" not in what:
        raise SystemExit(f"AddressSanitizer did not find the defect {defect}.\n{found.output}")


def run(folder: Path, seed: str, first: int, seconds: float, names: list[str]) -> dict[str, dict[str, float]] | Found:
    """The counts of each target, from a process of its own; or what it found."""
    command = [sys.executable, "-m", "dev.verify.native.child", seed, str(first), str(seconds), *names]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        counts: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
        return counts
    case = folder / "case"
    name, number = case.read_text().split() if case.exists() else ("no target", "0")
    return Found(name, int(number), done.returncode, done.stderr)


def counts_of(found: dict[str, dict[str, float]] | Found, seed: str) -> dict[str, dict[str, float]]:
    """The counts. Exits if something was found."""
    if not isinstance(found, Found):
        return found
    click.echo(
        f"{found.output}\nFOUND in {found.target}, case {found.case} (exit code {found.exit_code}). Once more: "
        f"python -m dev.verify.native --seed {seed} --targets {found.target} --case {found.case}",
        err=True,
    )
    sys.exit(1)


def table(sums: dict[str, dict[str, float]], seed: str) -> str:
    lines = [
        f"seed {seed}",
        f"{'target':11} {'cases':>9} {'a second':>9} {'inputs':>10} {'taken':>10} {'declined':>10}",
    ]
    for name, of in sums.items():
        lines.append(
            f"{name:11} {of['cases']:9.0f} {of['cases'] / max(of['s'], 0.001):9.1f} {of['inputs']:10.0f} "
            f"{of['taken']:10.0f} {of['inputs'] - of['taken']:10.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

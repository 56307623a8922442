"""The command lines that the oracles have in common: each version of Cassandra is judged by itself."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Judged(NamedTuple):
    """The result for one version."""

    # The counts, in words.
    summary: str
    # The differences, in words.
    differences: list[str]
    # Whether nothing differs, and as much was compared as was asked for.
    is_good: bool


def make_parser(
    name: str, description: str | None, versions: Iterable[str], units: str, count: int
) -> argparse.ArgumentParser:
    """Return a parser with --versions, --seed and `--UNITS`, such as --mutations: each version is judged by `count` of
    them.
    """
    parser, chosen = argparse.ArgumentParser(name, description=description), list(versions)
    parser.add_argument("--versions", default=",".join(chosen), help=f"by commas (default: all): {', '.join(chosen)}")
    parser.add_argument(f"--{units}", type=int, default=count, help=f"for each version (default: {count})")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def judge_all(versions: str, judge: Callable[[str], Judged]) -> int:
    """The exit status: 1 if a version (several by commas) is not good."""
    has_failed = False
    for version in versions.split(","):
        started = time.monotonic()
        judged = judge(version)
        for difference in judged.differences:
            print_progress(f"DIFFERENCE {difference}")
        print(f"{version}: {judged.summary} ({time.monotonic() - started:.0f} s)", flush=True)  # noqa: T201 - the result
        has_failed |= not judged.is_good
    return int(has_failed)


def print_progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()

"""Segments of every version in every form are read as Cassandra's own reader read them; and a judge that is lied to
notices.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.judge import Tally, judge_segment
from tests.support.vectors.segments import FOLDER, SegmentVector, keys, tables, vectors
from tests.support.workload.record import forms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VECTORS = vectors()
MOST_BYTES = 2_000_000


def judged(vector: SegmentVector, folder: Path, said: list[str] | None = None) -> Tally:
    return judge_segment(
        vector.said if said is None else said, vector.unpack(folder), tables(vector.version), keys(vector.version)
    )


def test_each_version_has_every_form() -> None:
    found = {version: {one.form for one in VECTORS if one.version == version} for version in VERSIONS}
    assert found == {line: set(forms(version)) for line, version in VERSIONS.items()}
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.version}-{vector.form}-{vector.name}")
def test_all_is_read_as_cassandra_reads_it(vector: SegmentVector, tmp_path: Path) -> None:
    tally = judged(vector, tmp_path)
    assert tally.differences == []
    assert tally.mutations + tally.refused == len(vector.said) - 1
    assert tally.mutations > 0


def _altered(said: list[str], rng: random.Random) -> list[str]:
    """One character of a value, a name or a number is another; not of what it complains about, which is its own."""
    line = rng.choice([number for number, text in enumerate(said) if not text.startswith('{"corrupt"')])
    text = said[line]
    places = [place for place, character in enumerate(text) if character.isalnum()]
    place = rng.choice(places)
    other = rng.choice([character for character in "0123456789abcdef" if character != text[place]])
    return [*said[:line], text[:place] + other + text[place + 1 :], *said[line + 1 :]]


def _dropped(said: list[str], rng: random.Random) -> list[str]:
    line = rng.randrange(len(said))
    return said[:line] + said[line + 1 :]


def _repeated(said: list[str], rng: random.Random) -> list[str]:
    line = rng.randrange(len(said) - 1)
    return said[: line + 1] + said[line:]


def _swapped(said: list[str], rng: random.Random) -> list[str]:
    line = rng.randrange(len(said) - 2)
    return [*said[:line], said[line + 1], said[line], *said[line + 2 :]]


@pytest.mark.parametrize("lie", [_altered, _dropped, _repeated, _swapped])
def test_what_cassandra_did_not_say_is_noticed(
    lie: Callable[[list[str], random.Random], list[str]], tmp_path: Path
) -> None:
    rng = random.Random(5)
    for vector in rng.choices(VECTORS, k=8):
        assert judged(vector, tmp_path, lie(vector.said, rng)).different > 0

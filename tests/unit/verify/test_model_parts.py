"""The parts of the model check that need no server: its statements, its shrinking, the places that it names."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.support.materializer.mutants import MUTANTS
from verify.model.generator import LATE_US, Generator
from verify.model.mutants import NAMES, SKIP
from verify.model.place import Place, place_of
from verify.model.shrink import complements, smallest
from verify.model.tables import TABLES, schema, tables_of

if TYPE_CHECKING:
    from collections.abc import Sequence

START = 1_000_000_000


@cache
def texts(seed: int, count: int = 3000, *, has_ties: bool = True) -> list[str]:
    return [one.cql("ks") for one in Generator(seed, TABLES, START, has_ties=has_ties).statements(count)]


def test_a_seed_always_gives_the_same_statements() -> None:
    assert texts(1) == texts(1) != texts(2)


def test_a_later_start_shifts_timestamps_and_nothing_else() -> None:
    for one, other in zip(
        Generator(1, TABLES, START).statements(500), Generator(1, TABLES, 2 * START).statements(500), strict=True
    ):
        assert len(one.parts) == len(other.parts)
        assert [(part.table, part.partition) for part in one.parts] == [
            (part.table, part.partition) for part in other.parts
        ]


@pytest.mark.parametrize(
    "words",
    [
        ("INSERT INTO ks.wide", "st"),
        ("UPDATE ks.many", "m[", "="),
        ("UPDATE ks.many", "l = [", "] + l"),
        ("UPDATE ks.many", "u.x ="),
        ("DELETE m[",),
        ("DELETE u.",),
        ("DELETE FROM ks.wide", "(c1, c2) >"),
        ("DELETE FROM ks.wide", "c1 =", "c2 <"),
        ("DELETE st FROM ks.wide",),
        ("DELETE FROM ks.hot USING TIMESTAMP", "WHERE p = $p".replace("$p", "0")),
        ("BEGIN UNLOGGED BATCH", "ks.off"),
        ("BEGIN  BATCH",),
        ("BEGIN COUNTER BATCH", "total = total"),
        ("IF NOT EXISTS",),
        ("IF EXISTS",),
        ("TTL 4",),
        ("blobAsInt(0x)",),
    ],
)
def test_every_kind_of_statement_is_among_them(words: tuple[str, ...]) -> None:
    assert any(all(word in text for word in words) for text in texts(1, 6000)), words


def test_without_ties_no_timestamp_comes_twice() -> None:
    found = [
        word
        for text in texts(1, has_ties=False)
        for before, word in itertools.pairwise(text.replace(";", " ").split())
        if before == "TIMESTAMP"
    ]
    assert len(found) == len(set(found)) > 1000
    assert min(map(int, found)) > START - LATE_US


def test_the_tables_have_every_shape() -> None:
    made = " ".join(schema(tables_of("5.0"), "{}"))
    for word in (
        "static",
        "counter",
        "vector<",
        "DESC",
        "default_time_to_live",
        "tuple<",
        "frozen<",
    ):
        assert word in made


def test_shrinking_leaves_only_what_diverges_together() -> None:
    def diverging(candidates: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [one for one in candidates if {3, 17, 18} <= set(one)]

    assert smallest(tuple(range(40)), diverging, lambda _: None) == (3, 17, 18)
    assert smallest(tuple(range(10)), diverging, lambda _: None) is None
    assert complements((1, 2, 3, 4, 5), 2) == [(4, 5), (1, 2, 3)]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("model_1.wide (3, 0, 'x'): in Kafka, but not in Cassandra", Place("wide", 3)),
        ("model_1.plain (-2,): in Cassandra, but not in Kafka", Place("plain", -2)),
        ("model_1.many p=5, c=1: row_sequence 4 follows 2", Place("many", 5)),
        ("model_1.off: no rows to compare", None),
        ("3 deletes, but 2 tombstones", None),
    ],
)
def test_a_problem_names_its_partition(line: str, place: Place | None) -> None:
    assert place_of(line) == place


def test_the_mutants_of_the_whole_path_are_the_folds() -> None:
    assert {name for name in NAMES if name != SKIP} <= {mutant.name for mutant in MUTANTS}

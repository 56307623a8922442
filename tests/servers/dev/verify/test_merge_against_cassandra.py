"""Merging against Cassandra's own classes, every version's, and whether mutants of our rules would be found.

`make verify WHAT=oracle-merge` runs a million merges a version. `CDC_ORACLE_ROUNDS` multiplies the merges here,
`CDC_ORACLE_SEED` starts another series.
"""

from __future__ import annotations

import inspect
import os
import random
from contextlib import nullcontext
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from cassandra_storage.formats.merge import reconciliation as merge
from cassandra_storage.formats.rows import deletion
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.types import counter
from dev.verify.oracle.merge_cases import RowMaker
from dev.verify.oracle.merge_check import Judge, answers, check, summary
from dev.verify.oracle.merge_oracle import OTHERWISE, MergeOracle
from dev.verify.oracle.merge_wire import REGULAR, TABLES, Merge, RowReader
from dev.verify.oracle.mutants import Mutant, mutants

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import ModuleType

    from dev.verify.oracle.merge_cases import Batch

BETWEEN = {"4.0", "4.1"}  # they merge as 5.0 does
SOME_LINES = [pytest.param(line, marks=pytest.mark.exhaustive) if line in BETWEEN else line for line in OTHERWISE]

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

MERGES = 4_000 * int(os.environ.get("CDC_ORACLE_ROUNDS", "1"))
SEED = int(os.environ.get("CDC_ORACLE_SEED", "7"))


@pytest.mark.parametrize("line", SOME_LINES)
def test_merges(line: str, tmp_path: Path) -> None:
    with MergeOracle(tmp_path, line) as oracle:
        *_, result = check(oracle, line, MERGES, SEED)
    assert not result.differences, "\n".join(map(str, result.differences))
    assert result.merges == MERGES
    assert bool(result.by_3_11) == (line == "3.11"), summary(line, result, SEED)


def test_cassandra_itself_depends_on_the_order_where_a_deletion_is_shadowable(tmp_path: Path) -> None:
    """Our merge does too: tests/unit/cassandra_storage/formats/merge/test_reconciliation.py has the same rows."""
    deleted = Row((), {}, deletion=RowDeletion(DeletionTime(1, 100), is_shadowable=True))
    cell, inserted = Row((), {"c0": Cell(1, b"x")}), Row((), {}, LivenessInfo(2))
    with MergeOracle(tmp_path, "5.0") as oracle:

        def merged(*rows: Row) -> Row:
            everything = Merge("r", 0, tuple(range(len(rows))))
            return RowReader(oracle.merge(REGULAR, rows, [LIVE], [everything])).row(REGULAR)

        assert merged(deleted, cell, inserted) == Row((), cell.columns, inserted.liveness)
        assert merged(merged(deleted, cell), inserted) == inserted


# Of these the oracle has no say.
OUTSIDE = {
    # Our own: tests/unit/cassandra_storage/formats/merge/test_reconciliation.py.
    merge: ("largest_timestamp", "_reconcile_paths"),
    # Damaged contexts, and what reading a log clears: tests/unit/cassandra_storage/formats/types/test_counter.py, and
    # the oracle. What a snapshot sends: tests/unit/cassandra_storage/formats/sstable/test_merge.py.
    counter: ("_header_length", "clear_marked", "without_local"),
    deletion: ("is_live", "is_empty"),
}
EQUIVALENT = {
    "_merge_cells: if path_key is None -> if True",  # makes it again each time
    "merge_contexts: if left_has_all -> if False",  # makes the same context again
    "_relation: if left.value == right.value -> if False",  # takes the right one of two equal shards
    "_context: if len(shards) > -_GLOBAL_OFFSET -> if False",  # dev/verify/fuzz has so many
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Batch, list[Row]]]:
    """A few batches with 5.0's answers."""
    maker = RowMaker(random.Random(SEED), wide_seconds=True)
    batches = [maker.batch(table, 1000) for table in TABLES * 2]
    with MergeOracle(tmp_path_factory.mktemp("oracle"), "5.0") as oracle:
        return [(batch, answers(oracle, batch)) for batch in batches]


@pytest.mark.exhaustive
@pytest.mark.parametrize("module", OUTSIDE, ids=lambda module: module.__name__)
def test_every_mutant_is_found(module: ModuleType, judged: list[tuple[Batch, list[Row]]]) -> None:
    made = [one for one in mutants(inspect.getsource(module)) if one.function not in OUTSIDE[module]]
    assert all(_agrees(batch, answers_, merge.RowMerger) for batch, answers_ in judged)
    survivors = {one.name for one in made if not _is_found(module, one, judged)}
    assert survivors == EQUIVALENT & {one.name for one in made}
    assert len(made) > 4


def _is_found(module: ModuleType, mutant: Mutant, judged: list[tuple[Batch, list[Row]]]) -> bool:
    """Whether a batch comes out otherwise, or not at all."""
    mutated = mutant.module(module)
    merger = mutated.RowMerger if module is merge else merge.RowMerger
    with _in_place_of(module, mutated):
        try:
            return not all(_agrees(batch, answers_, merger) for batch, answers_ in judged)
        except Exception:  # noqa: BLE001  whatever the mutant breaks
            return True


def _agrees(batch: Batch, answers_: list[Row], merger: type[merge.RowMerger]) -> bool:
    return not Judge(batch, merger).compare(answers_).differences


def _in_place_of(module: ModuleType, mutated: ModuleType) -> AbstractContextManager[object]:
    if module is counter:
        return mock.patch.object(counter, "merge_contexts", mutated.merge_contexts)
    if module is deletion:
        methods = {name: vars(mutated.DeletionTime)[name] for name in ("deletes", "supersedes")}
        patched: AbstractContextManager[object] = mock.patch.multiple(DeletionTime, **methods)
        return patched
    return nullcontext()

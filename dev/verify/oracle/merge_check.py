"""Cassandra's merging against ours: `python -m dev.verify.oracle.merge_check --versions 5.0 --merges 1000000`.

Every merge that a read would do (Row.Merger) has to give the very same row, byte for byte; one that a memtable does
(Rows.merge), the same once it is merged as a read does. Exit code 1 and the first differences if not.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import reduce
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.rows.byte_comparable import path_encoder
from cassandra_storage.formats.rows.row import ComplexColumnData, Row
from dev.verify.oracle import merge_rules
from dev.verify.oracle.merge_cases import MERGES, Batch, RowMaker
from dev.verify.oracle.merge_oracle import NOW, OTHERWISE, MergeOracle
from dev.verify.oracle.merge_wire import TABLES, Merge, RowReader, is_complex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


SHOWN = 3
_PROGRESS_SECONDS = 5.0


class Difference(NamedTuple):
    """A merge that the two do not agree on."""

    # The request.
    batch: Batch
    # The merge.
    merge: Merge
    # Cassandra's row.
    theirs: Row
    # Our row.
    ours: Row

    def __str__(self) -> str:
        rows = "\n".join(f"  row    {self.batch.pool[index]}" for index in self.merge.rows)
        head = f"{self.merge.how} under {self.batch.active[self.merge.active]}"
        return f"{head}\n{rows}\n  theirs {self.theirs}\n  ours   {self.ours}"


class Result(NamedTuple):
    """The counts of a comparison."""

    # The number of merges.
    merges: int
    # The number of merges that came out by rules that 3.11 alone has.
    by_3_11: int
    # The number of merges that no memtable does.
    passed_over: int
    # The merges that differ.
    differences: list[Difference]


def check(oracle: MergeOracle, line: str, merges: int, seed: int) -> Iterator[Result]:
    """The result so far, after each batch; it ends at the first few differences."""
    maker = RowMaker(random.Random(seed), wide_seconds=line == "5.0")
    total = Result(0, 0, 0, [])
    for number in count():
        batch = maker.batch(TABLES[number % len(TABLES)], min(MERGES, merges - total.merges))
        one = Judge(batch).compare(answers(oracle, batch), keeps_3_11=line == "3.11")
        total = Result(
            total.merges + one.merges,
            total.by_3_11 + one.by_3_11,
            total.passed_over + one.passed_over,
            total.differences + one.differences,
        )
        yield total
        if total.merges >= merges or len(total.differences) >= SHOWN:
            return


def answers(oracle: MergeOracle, batch: Batch) -> list[Row]:
    answer = RowReader(oracle.merge(*batch))
    merged = [answer.row(batch.table) for _ in batch.merges]
    assert answer.at_end
    return merged


class Judge:
    """Compares the answers to a batch with what RowMerger, or a mutant of it, makes of it."""

    def __init__(self, batch: Batch, merger: type[RowMerger] = RowMerger) -> None:
        self._batch = batch
        self._merger = merger(batch.table.columns, is_counter=batch.table.is_counter)
        self._of_memtables = [self._is_of_a_memtable(row) for row in batch.pool]
        self._path_keys = {
            name: path_encoder(column.type) for name, column in batch.table.columns.items() if is_complex(column.type)
        }

    def compare(self, answers: Sequence[Row], *, keeps_3_11: bool = False) -> Result:
        """`keeps_3_11`: the answers are a 3.11's."""
        by_3_11 = passed_over = 0
        differences = []
        for merge, answer in zip(self._batch.merges, answers, strict=True):
            if merge.how == "w" and not all(self._of_memtables[index] for index in merge.rows):
                passed_over += 1
            elif not self._agree(merge, answer):
                if keeps_3_11 and self._agree_by_3_11(merge, answer):
                    by_3_11 += 1
                else:
                    differences.append(Difference(self._batch, merge, answer, self._merged(merge)))
        return Result(len(self._batch.merges), by_3_11, passed_over, differences)

    def _agree(self, merge: Merge, answer: Row) -> bool:
        ours, theirs = self._both(merge, answer)
        return ours == theirs or self._spelled_alike(ours) == self._spelled_alike(theirs)

    def _agree_by_3_11(self, merge: Merge, answer: Row) -> bool:
        with merge_rules.of_3_11(NOW):
            both = self._both(merge, answer)
        ours, theirs = (merge_rules.without_ties(self._spelled_alike(row), NOW) for row in both)
        return ours == theirs

    def _both(self, merge: Merge, answer: Row) -> tuple[Row, Row]:
        return self._merged(merge), self._merger.merge([answer]) if merge.how == "w" else answer

    def _merged(self, merge: Merge) -> Row:
        rows = [self._batch.pool[index] for index in merge.rows]
        if merge.how == "r":
            return self._merger.merge(rows, self._batch.active[merge.active])
        return reduce(lambda merged, row: self._merger.merge((merged, row)), rows)

    def _is_of_a_memtable(self, row: Row) -> bool:
        """Whether a memtable may hold it: it shadows nothing of its own, and its deletion is not shadowable."""
        return not row.deletion.is_shadowable and self._merger.merge([row]) == row

    def _spelled_alike(self, row: Row) -> Row:
        """Paths as their comparator sees them: which spelling is kept where nothing else decides is the heap's whim."""
        columns = dict(row.columns)
        for name, key in self._path_keys.items():
            data = columns.get(name)
            if isinstance(data, ComplexColumnData):
                cells = tuple(cell._replace(path=key(cell.path or b"")) for cell in data.cells)
                columns[name] = data._replace(cells=cells)
        return row._replace(columns=columns)


def check_versions(line: str, merges: int, seed: int) -> Result:
    """Check one version, with progress on the terminal."""
    result = Result(0, 0, 0, [])
    with tempfile.TemporaryDirectory() as folder, MergeOracle(Path(folder), line) as oracle:
        started = shown = time.monotonic()
        for result in check(oracle, line, merges, seed):
            if time.monotonic() - shown > _PROGRESS_SECONDS:
                shown = time.monotonic()
                print(f"{line}: {result.merges:,} merges, {result.merges / (shown - started):,.0f}/s", flush=True)
    for difference in result.differences[:SHOWN]:
        print(difference)
    print(summary(line, result, seed), flush=True)
    return result


def summary(line: str, result: Result, seed: int) -> str:
    text = f"{line}: {result.merges:,} merges (seed {seed}), {len(result.differences)} differences"
    if result.by_3_11:
        text += f"; {result.by_3_11:,} left out, in which 3.11 keeps its own rules, not 4.0's"
    return text + f"; {result.passed_over:,} passed over: rows that no memtable holds"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Merge random rows by Cassandra's own classes and by ours.")
    parser.add_argument("--versions", default=",".join(OTHERWISE), help="a comma between two (default: all)")
    parser.add_argument("--merges", type=int, default=1_000_000, help="for each version")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    results = [check_versions(line, options.merges, options.seed) for line in options.versions.split(",")]
    return int(any(result.differences for result in results))


if __name__ == "__main__":
    sys.exit(main())

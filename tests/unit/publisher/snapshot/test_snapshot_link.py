"""The worker knows its node's truncations, beside a publisher that has seen more of them, or fewer."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, cast

import pytest

from publisher.snapshot.connections.link import Link
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import LogSegments
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AT = 1_700_000_000_000  # ms
HOUR = 3_600_000


class WorkerBesidePublisher:
    """A node with the table ks.a, its publisher, and a worker. `served`: what the worker waits for."""

    def __init__(self, folder: Path) -> None:
        self.rows = SchemaRows()
        self.table_id = self.rows.create("ks", "a", cdc=True)
        self._file = folder / "schema.json"
        self.publisher = self._schema(self._file)
        self.publisher.refresh()
        own = folder / "own.json"
        shutil.copy(self._file, own)
        nothing = cast("Any", None)
        self._worker = Link(nothing, nothing, self._schema(own), nothing, nothing, cast("Any", self), self._file)
        self._worker.schema.load()
        self.served: Callable[[], object] | None = None

    def _schema(self, file: Path) -> NodeSchema:
        segments = LogSegments(oldest=lambda: 1, newest=lambda: 9)
        return NodeSchema(file, self.rows.run_query, ("cdc_filler", "filler"), segments=segments)

    def truncate(self, position: int, at: int) -> None:
        self.rows.truncate(self.table_id, 6, position, at)

    def worker_knows(self) -> int:
        self._worker.schema.refresh()
        return self._worker.truncated_at(self._worker.schema.published[self.table_id])

    def serve(self) -> None:
        assert self.served is not None
        self.served()

    @property
    def end(self) -> int:
        """Return the truncation that row images are compared with."""
        return self.publisher.row_ends.pending[self.table_id].at


@pytest.fixture
def beside(tmp_path: Path) -> WorkerBesidePublisher:
    return WorkerBesidePublisher(tmp_path)


def test_a_table_that_was_never_truncated(beside: WorkerBesidePublisher) -> None:
    assert beside.worker_knows() == 0


@pytest.mark.parametrize("seen", [(), (1,), (2,), (1, 2), (1, 2, 3)])
def test_of_truncations_after_the_clock_was_set_back_it_knows_what_the_publisher_does(
    beside: WorkerBesidePublisher, seen: tuple[int, ...]
) -> None:
    """Each counts 1 ms after the one before, whichever of them the worker has seen."""
    for number, at in enumerate((AT, AT - HOUR, AT - 2 * HOUR), start=1):
        beside.truncate(100 * number, at)
        beside.publisher.refresh()
        if number in seen:
            assert beside.worker_knows() == beside.end
    assert beside.worker_knows() == beside.end == AT + 2


def test_what_the_publisher_has_not_seen_does_not_count_for_the_worker(beside: WorkerBesidePublisher) -> None:
    """A row image from before the last truncation must be earlier than its end."""
    beside.truncate(100, AT)
    beside.publisher.refresh()
    beside.truncate(200, AT - HOUR)
    beside.served = beside.publisher.refresh
    assert beside.worker_knows() == AT + 1
    beside.truncate(300, AT - HOUR)
    beside.publisher.refresh()
    assert beside.end == AT + 2


def test_a_truncation_that_only_the_publisher_has_seen_is_from_before_the_files(beside: WorkerBesidePublisher) -> None:
    beside.truncate(100, AT)
    beside.publisher.refresh()
    assert beside.worker_knows() == AT
    beside.truncate(200, AT + HOUR)
    beside.publisher.refresh()
    beside.truncate(100, AT)  # what the worker had read a moment before
    assert beside.worker_knows() == AT + HOUR

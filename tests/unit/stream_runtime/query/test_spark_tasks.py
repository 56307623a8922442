"""The tasks of a shuffle keep the code of an error: Spark would run them again, and lose it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.query.spark_tasks import _part_of, _Read, _Use

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stream_runtime.query.spark_tasks import Entry

ERROR = CdcError(Code.STATE_DAMAGED, "problem", "fix")


def read(item: int) -> Iterator[Entry]:
    yield (item, b"first"), item
    if item == 2:
        raise ERROR


def use(entries: Iterable[Entry]) -> Iterator[object]:
    for _, value in entries:
        if value == 3:
            raise ERROR
        yield value


def test_an_error_of_a_reading_task_ends_the_task_that_needs_its_entries() -> None:
    entries = sorted((entry for item in (1, 2) for entry in _Read(read)(item)), key=lambda entry: entry[0])
    assert [_part_of(key) for key, _ in entries] == [0, 1, 2]
    assert list(_Use(use)(entries)) == [ERROR]
    assert list(_Use(use)(entries[1:])) == [1, 2]


def test_an_error_of_a_using_task_is_its_last_result() -> None:
    assert list(_Use(use)([((1,), 1), ((3,), 3), ((4,), 4)])) == [1, ERROR]

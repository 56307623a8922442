"""A store that holds its own positions keeps the contract of a commit protocol. Kafka's test is beside the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.stream_runtime.commit_contract import CONTRACT
from tests.support.stream_runtime.sqlite_commits import FencedError, SqliteCommits, committed_keys

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stream_runtime.records import Share
    from tests.support.stream_runtime.commit_contract import Store


class SqliteStore:
    topic = "source"
    fenced: tuple[type[Exception], ...] = (FencedError,)

    def __init__(self, folder: Path) -> None:
        self._file = folder / "store.db"

    def open(self, share: Share) -> SqliteCommits:
        return SqliteCommits(self._file, share)

    def keys(self) -> list[bytes]:
        return committed_keys(self._file)


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_sqlite_keeps_the_contract(check: Callable[[Store], None], tmp_path: Path) -> None:
    check(SqliteStore(tmp_path))


def test_a_store_that_fences_nobody_breaks_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.stream_runtime.sqlite_commits._EPOCH", "SELECT 1 WHERE ? <> ?")
    broken = []
    for number, check in enumerate(CONTRACT):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            check(SqliteStore(folder))
        except (AssertionError, pytest.fail.Exception):
            broken.append(check.__name__)
    assert len([name for name in broken if "fence" in name]) == sum("fence" in check.__name__ for check in CONTRACT)

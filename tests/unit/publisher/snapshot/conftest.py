"""A snapshot's worker beside SSTables of vectors. A file that uses it has a fixture `vectors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.publisher.snapshot_beside import Beside, make_beside, make_records

if TYPE_CHECKING:
    from pathlib import Path

    from publisher.snapshot.state.records import Records
    from tests.support.vectors.indexed_sstables import IndexedVectors


@pytest.fixture
def beside(vectors: IndexedVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:
    return make_beside(vectors, tmp_path, monkeypatch)


@pytest.fixture
def records(tmp_path: Path, beside: Beside) -> Records:
    return make_records(beside, tmp_path)

"""The check of TPC-H's joins: no difference on small tables, and a seeded defect is found."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from dev.verify.tpch.check import Check
from joinery.job.join_processor import JoinProcessor
from joinery.joining.overlay import Overlay
from tests.support.joinery.tpch_tables import small_tables

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def differences(folder: Path) -> tuple[int, int]:
    """Of the loaded tables, and after changes."""
    check = Check(folder, small_tables(Random(1)))
    try:
        check.load()
        loaded = sum(check.differences().values())
        check.change(1, 300)
        assert all(run.rows() for run in check.runs.values())
        return loaded, sum(check.differences().values())
    finally:
        check.close()


def test_no_row_differs(tmp_path: Path) -> None:
    assert differences(tmp_path) == (0, 0)


def test_a_seeded_defect_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are not deleted from the states."""
    defaults = JoinProcessor.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "in_core", False)
    monkeypatch.setattr(Overlay, "delete_row", lambda *_: None)
    loaded, changed = differences(tmp_path)
    assert loaded == 0
    assert changed > 0

"""The check of the loads finds seeded defects."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from cdc_common.errors.codes import CdcError
from tests.support.warehouse.load_checks import play, random_steps
from tests.support.warehouse.scene import Shop, Warehouse
from warehouse.loading import table_task
from warehouse.loading.rows import newest
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, Form
from warehouse.targets import loader, states
from warehouse.targets.duckdb import DuckDbConnection
from warehouse.targets.loader import Loader
from warehouse.targets.statements import claim_state, merge

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.records import Load, Rows

SEEDS = range(20)
_claim, _load = Loader._claim, Loader.load


def play_seed(folder: Path, form: Form, seed: int) -> None:
    shop = Shop()
    connect = partial(DuckDbConnection, folder / f"{form.name}-{seed}.duckdb", 1.0)
    play(shop, Warehouse(shop.topic, connect, form), random_steps(Random(seed)))


def is_found(folder: Path, form: Form) -> bool:
    """Whether a check fails."""
    for seed in SEEDS:
        try:
            play_seed(folder, form, seed)
        except (AssertionError, CdcError, duckdb.Error):
            return True
    return False


def claim_that_commits(self: Loader, load: Load) -> None:
    _claim(self, load)
    self.connection.run("COMMIT")
    self.connection.run("BEGIN TRANSACTION")


def load_with_lowest_offsets(self: Loader, load: Load) -> None:
    _load(self, load._replace(after=load.after._replace(offsets={**load.after.offsets, **load.starts})))


def oldest(found: list[Rows]) -> list[Rows]:
    return [_negated(rows) for rows in newest([_negated(rows) for rows in found])]


def _negated(rows: Rows) -> Rows:
    return replace(rows, sequences=[-sequence for sequence in rows.sequences])


def merge_deleted_rows(*arguments: Any) -> list[str]:  # noqa: ANN401 - those of merge
    return [text.replace("s._op <> 'd' AND ", "").replace(" WHERE _op <> 'd'", "") for text in merge(*arguments)]


def merge_without_closing(*arguments: Any) -> list[str]:  # noqa: ANN401 - those of merge
    return [text for text in merge(*arguments) if "is_current = FALSE" not in text]


def claim_any_version(where: str) -> str:
    return claim_state(where).replace("version = ?", "version >= ? - 1000")


MUTANTS: dict[str, tuple[Form, object, str, object]] = {
    "offsets outside of the transaction": (CURRENT, Loader, "_claim", claim_that_commits),
    "the lowest offsets": (CURRENT, Loader, "load", load_with_lowest_offsets),
    "changes twice": (CHANGES, Loader, "load", load_with_lowest_offsets),
    "the oldest version of a key": (CURRENT, table_task, "newest", oldest),
    "a deleted row is inserted": (CURRENT, loader, "merge", merge_deleted_rows),
    "a deletion is a version": (HISTORY, loader, "merge", merge_deleted_rows),
    "a version stays open": (HISTORY, loader, "merge", merge_without_closing),
    "a second loader goes on": (CURRENT, states, "claim_state", claim_any_version),
    "a second loader adds its changes": (CHANGES, states, "claim_state", claim_any_version),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_seeded_defect_is_found(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form, owner, name, changed = MUTANTS[mutant]
    monkeypatch.setattr(owner, name, changed)
    assert is_found(tmp_path, form)


@pytest.mark.parametrize("form", [CURRENT, CHANGES, HISTORY], ids=lambda form: form.name)
def test_without_a_defect_nothing_is_found(form: Form, tmp_path: Path) -> None:
    for seed in range(2):
        play_seed(tmp_path, form, seed)

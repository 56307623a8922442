"""The check of random histories is checked: it must find each seeded defect."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from materializer.fold import schema_change
from materializer.fold.chunk_fold import ChunkFold
from tests.support.materializer.history.mutants import SCHEMA_MUTANTS
from tests.support.materializer.history.run import check_history
from tests.support.materializer.history.steps import History, histories
from tests.support.materializer.mutants import Mutant, seed

GENERATE = settings(
    max_examples=1000,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@GENERATE
@given(histories)
def check(history: History) -> None:
    check_history(history)


@pytest.mark.exhaustive  # some take a thousand histories
@pytest.mark.parametrize("mutant", SCHEMA_MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_seeded_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        patch.setattr(ChunkFold, "_may_be_native", False)  # a defect is of the Python code
        seed(mutant, patch)
        with pytest.raises(Exception):  # noqa: B017, PT011 - a defect may show as anything
            check()

"""The fold under schemas that change between any writes, deletions, expiries, purges and reshards, against a model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from materializer.fold import schema_change
from tests.support.materializer.fold_checks import EXAMPLES
from tests.support.materializer.history.run import check_history
from tests.support.materializer.history.steps import History, histories


@settings(max_examples=15 * EXAMPLES)
@given(histories)
def test_any_history_ends_as_the_model_says(history: History) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        check_history(history)

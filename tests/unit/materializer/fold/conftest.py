"""Fixtures that several files of this folder need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.materializer import fold_run
from tests.support.materializer.both_folds import fold_both

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def both_folds() -> Iterator[None]:
    """Everything is folded with and without the native core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_run, "fold_chunk", fold_both)
        yield

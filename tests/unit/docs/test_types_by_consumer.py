"""Pages about consumers show the code that their tests run and the types that they expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.consumers.page import GUIDES, PAGE, guide, page
from tests.support.consumers.typed_values import POSTGRESQL, STOPPED, TYPES

if TYPE_CHECKING:
    from pathlib import Path

FIX = "run: python -m tests.support.consumers.page"


def test_the_page_is_made_from_the_tests() -> None:
    assert PAGE.read_text() == page(), FIX


@pytest.mark.parametrize("file", sorted(GUIDES.glob("*.md")), ids=lambda file: file.stem)
def test_a_guide_shows_what_is_run(file: Path) -> None:
    text = file.read_text()
    assert text == guide(text), FIX
    assert "<!-- run: " in text


def test_each_type_has_its_outcome() -> None:
    assert [of.name for of in TYPES] == list(POSTGRESQL)
    assert set(STOPPED) < set(POSTGRESQL)

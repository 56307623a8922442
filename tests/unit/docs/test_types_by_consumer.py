"""docs/reference/types-by-consumer.md is what the tests of consumers expect."""

from __future__ import annotations

from tests.support.consumers.page import PAGE, page
from tests.support.consumers.typed_values import POSTGRESQL, STOPPED, TYPES


def test_the_page_is_made_from_the_tests() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.support.consumers.page"


def test_each_type_has_its_outcome() -> None:
    assert [of.name for of in TYPES] == list(POSTGRESQL)
    assert set(STOPPED) < set(POSTGRESQL)

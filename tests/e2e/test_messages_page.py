"""docs/reference/change-event-examples.md is what the scripts say; the script format refuses what it does not know."""

from __future__ import annotations

import pytest

from tests.support.e2e.messages_page import PAGE, page
from tests.support.e2e.script import parse, read_scripts


def test_the_page_is_made_from_the_scripts() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.support.e2e.messages_page"


def test_every_script_has_a_title_a_table_and_messages() -> None:
    for script in read_scripts():
        assert script.steps[0].prose[0].startswith("# "), script.name
        assert "CREATE T" in script.steps[0].statement, script.name
        assert any(step.messages for step in script.steps), script.name


def test_steps_have_their_prose_statement_and_messages() -> None:
    first, second = parse(
        '-- why\nBEGIN BATCH\n  A;\nAPPLY BATCH;\n-> {"a": 1,\n    "b": 2}\n-> {"c": 3}\n-- later\n-> nothing'
    )
    assert (first.prose, first.statement) == (["why"], "BEGIN BATCH\n  A;\nAPPLY BATCH;")
    assert first.messages == [{"a": 1, "b": 2}, {"c": 3}]
    assert (second.statement, second.messages, second.is_awaited_in_vain) == ("", [], True)


@pytest.mark.parametrize("text", ["-> {}", "  A;", "SELECT", "A;\n\nB;"])
def test_a_line_of_no_kind_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no end|neither"):
        parse(text)

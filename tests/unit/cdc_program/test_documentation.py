"""Documentation that could go stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_program.docs import CONFIGURATION, configuration
from cdc_program.errors import Code

RUNBOOK = Path(CONFIGURATION).with_name("errors.md")
PARAGRAPHS = dict(re.findall(r"^## (CDC-\d{3}) \S.*\n\n((?:(?!## ).*\n?)*)", RUNBOOK.read_text(), re.MULTILINE))


def test_configuration_is_what_the_code_says() -> None:
    assert CONFIGURATION.read_text() == configuration(), "run: python -m cdc_program.docs"


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.name)
def test_each_code_has_its_paragraph(code: Code) -> None:
    assert len(PARAGRAPHS[code.text].split()) > 25


def test_each_paragraph_has_its_code_in_order() -> None:
    assert re.findall(r"^## (\S+)", RUNBOOK.read_text(), re.MULTILINE) == sorted(code.text for code in Code)


def test_numbers_are_not_used_twice() -> None:
    assert len({code.value[0] for code in Code}) == len(list(Code))
    assert Code.__members__.keys() == {code.name for code in Code}

"""The meaning, cause and fix of each error code, for docs/reference/errors.md and the command `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors import node, programs, raw_partitions, registry, tables, transformer
from cdc_common.errors.explanation import Explanation, as_section, as_text
from cdc_common.errors.scopes import scope_table

if TYPE_CHECKING:
    from cdc_common.errors.codes import Code

_SCOPES = """## What stops

How much of a program stops at a code. Everything outside of that goes on. If a code has several, the place where it
occurs decides."""

EXPLANATIONS: dict[Code, Explanation] = dict(
    sorted(
        {
            **programs.EXPLANATIONS,
            **node.EXPLANATIONS,
            **registry.EXPLANATIONS,
            **raw_partitions.EXPLANATIONS,
            **tables.EXPLANATIONS,
            **transformer.EXPLANATIONS,
        }.items(),
        key=lambda item: item[0].text,
    )
)
"""Each code, in the order of the numbers."""


def explain(code: Code) -> str:
    """The title, and meaning, cause and fix, for a terminal."""
    return as_text(code.text, EXPLANATIONS[code])


def titles() -> str:
    """A line for each code."""
    return "\n".join(f"{code.text}  {explanation.title}" for code, explanation in EXPLANATIONS.items())


def sections() -> str:
    """The sections of docs/reference/errors.md: one for each code, and what each stops."""
    codes = "\n".join(as_section(code.text, explanation) for code, explanation in EXPLANATIONS.items())
    return f"{codes}\n{_SCOPES}\n\n{scope_table()}\n"

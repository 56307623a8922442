"""The meaning, cause and fix of each error code, for docs/reference/errors.md and the command `explain`.

A code that one program alone has is explained by that program, in its module error_pages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cdc_common.errors import jobs, programs, servers
from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation, as_section, as_text
from cdc_common.errors.scopes import EVERYWHERE, LOCAL_STACK, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM_PACKAGES = (
    "publisher",
    "filler",
    "materializer",
    "transformer",
    "joinery",
    "archive",
    "warehouse",
    "schematizer",
)
"""Each has a module error_pages, which is imported by name: what programs share imports none of them."""
_PAGES = {program: import_module(f"{program}.error_pages") for program in PROGRAM_PACKAGES}
_SCOPES = """## What stops

How much of a program stops at a code. Everything outside of that goes on. If a code has several, the place where it
occurs decides."""

EXPLANATIONS: dict[Code, Explanation] = dict(
    sorted(
        (item for page in (programs, servers, jobs, *_PAGES.values()) for item in page.EXPLANATIONS.items()),
        key=lambda item: item[0].text,
    )
)
"""Each code, in the order of the numbers."""

SCOPES: Mapping[str, Mapping[Code, tuple[Scope, ...]]] = {
    **{program: {**EVERYWHERE, **page.SCOPES} for program, page in _PAGES.items()},
    "local_stack": {**EVERYWHERE, **LOCAL_STACK},
}
"""The scopes of each code by program."""


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


def scope_table() -> str:
    """A Markdown table: what each code stops, by program. Codes of every program have one row for all."""
    rows = ["| code | program | what stops or waits |", "| --- | --- | --- |"]
    for code in sorted(Code, key=lambda code: code.text):
        if code in EVERYWHERE:
            rows.append(f"| {code.text} | each | {_words(EVERYWHERE[code])} |")
            continue
        rows += [
            f"| {code.text} | {program} | {_words(scopes[code])} |"
            for program, scopes in SCOPES.items()
            if code in scopes
        ]
    return "\n".join(rows)


def _words(scopes: tuple[Scope, ...]) -> str:
    return "; or ".join(scope.value for scope in scopes)

"""One explanation of a code: its texts, and how the page and the command `explain` show them."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

WIDTH = 120
MAX_LINES = 8
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Texts in Markdown: plain words, `code` and links relative to docs/reference. Their line breaks are spaces."""

    # The heading, without the code.
    title: str
    # The finding of the program, and what the program does now.
    meaning: str
    # The reasons why that happens.
    cause: str
    # The steps for the reader.
    fix: str

    def lines(self, width: int = WIDTH) -> list[str]:
        """A list of three items, wrapped, without the title."""
        parts = (("Meaning", self.meaning), ("Cause", self.cause), ("Fix", self.fix))
        return [
            line
            for label, text in parts
            for line in textwrap.wrap(
                f"- **{label}**: {' '.join(text.split())}",
                width,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        ]


def as_section(code: str, explanation: Explanation) -> str:
    """The section of docs/reference/errors.md."""
    return "\n".join([f"## {code} {explanation.title}", "", *explanation.lines(), ""])


def as_text(code: str, explanation: Explanation, width: int = 100) -> str:
    """The same for a terminal: links become the paths of the pages."""
    plain = Explanation(
        explanation.title,
        *(_LINK.sub(_plain_link, text) for text in (explanation.meaning, explanation.cause, explanation.fix)),
    )
    lines = [line.replace("- **", "").replace("**:", ":") for line in plain.lines(width)]
    return "\n".join([f"{code} {explanation.title}", *lines])


def _plain_link(link: re.Match[str]) -> str:
    text, target = link.groups()
    if target.startswith("#"):
        return text
    return f"{text} ({target.replace('../', 'docs/', 1) if target.startswith('../') else f'docs/reference/{target}'})"

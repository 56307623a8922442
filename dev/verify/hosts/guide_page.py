"""The commands and files of a guide, in the order of the page, as a reader copies them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDES = project_root() / "docs" / "guides"
PROGRAMS = r"cassandra-[a-z]+|nodetool|kafka-[a-z-]+\.sh|cqlsh|systemctl|pip|python3|export|/opt/\S+|sudo"
STATEMENTS = "ALTER|CREATE|DROP|GRANT|REVOKE|INSERT|DELETE|UPDATE|SELECT"
_FENCE = re.compile(r"^([ \t]*)```(\w*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_LATER = re.compile(r"<!-- guide: (.*?) -->\s*\Z")
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_COMMAND = re.compile(rf"(?:{PROGRAMS}) \S")
_STATEMENT = re.compile(rf"(?:{STATEMENTS}) \S.*")
SHELLS = frozenset({"sh", ""})
FILES = frozenset({"toml", "ini", "properties", "yaml"})


class Item(NamedTuple):
    """One thing that a reader types or writes."""

    # The file's name.
    page: str
    # The heading that it is below.
    heading: str
    # "command", "statement" (of CQL), or the language of a file.
    kind: str
    # The command, the statement or the file's content.
    text: str
    # Whether it stands within a line, not in a block.
    is_inline: bool
    # When it is to be done, if that is later: the page says so in a comment before the block.
    later: str = ""

    @property
    def where(self) -> str:
        """Where a reader finds it."""
        return f"docs/guides/{self.page}, {self.heading}"


def items_of(page: str) -> list[Item]:
    """Return what the page shows, in its order."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    headings = [(found.start(), found[1]) for found in _HEADING.finditer(_without_blocks(text))]
    found: list[tuple[int, str, str, bool, str]] = []
    for fence in _FENCE.finditer(text):
        comment = _LATER.search(text[: fence.start()])
        later = comment[1] if comment else ""
        found += [(fence.start(), kind, part, False, later) for kind, part in _of_block(fence[2], fence[3])]
    for span in _INLINE.finditer(_without_blocks(text)):
        words = re.sub(r"\s+", " ", span[1])
        if _COMMAND.match(words):
            found.append((span.start(), "command", words, True, ""))
        elif _STATEMENT.match(words):
            found.append((span.start(), "statement", words.rstrip(";"), True, ""))
    found.sort(key=lambda entry: entry[0])
    return [
        Item(page, next((name for at, name in reversed(headings) if at < start), ""), kind, part, is_inline, later)
        for start, kind, part, is_inline, later in found
    ]


def _without_blocks(text: str) -> str:
    """The text with each block blanked out, so that positions stay."""
    return _FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _of_block(language: str, block: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each part of a block."""
    if language == "cql":
        statements = re.sub(r"--.*", "", block).split(";")
        yield from (("statement", " ".join(one.split())) for one in statements if one.strip())
    elif language in FILES:
        yield language, block
    elif language in SHELLS:
        for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines():
            command = re.sub(r"(^|\s+)#.*", "", line).strip()
            if command and (language or _COMMAND.match(command)):
                yield "command", command

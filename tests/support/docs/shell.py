"""The commands of a shell that the docs show: in fenced blocks, and within lines."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = frozenset({"sh", "bash", "shell", "console"})
_FENCE = re.compile(r"^[ \t]*(```+)(\w*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_BEFORE = frozenset({"sudo", "exec", "time"})
_PROGRAM = re.compile(r"cassandra-[a-z]+|make|kafka-[\w.-]+|spark-submit|nodetool|systemctl|kubectl|curl|cqlsh|pip")
"""The beginning of a command in a block without a language."""


class Shown(NamedTuple):
    """One command: the words that the shell makes of it, without assignments before it and redirections after it."""

    page: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return shlex.join(self.words)


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of README.md and of each page below docs."""
    root = project_root()
    for file in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        yield str(file.relative_to(root)), file.read_text(encoding="utf-8")


def fenced(page: str, text: str) -> Iterator[Shown]:
    """Yield the commands in the order of the page. Of a block without a language, yield only lines that begin with `$ `
    or a known program.
    """
    for _, language, block in _FENCE.findall(text):
        if language in SHELLS or not language:
            for line in _lines(block):
                for words in _commands(line.removeprefix("$ ")):
                    if language or line.startswith("$ ") or _PROGRAM.fullmatch(words[0]):
                        yield Shown(page, words)


def inline(page: str, text: str) -> Iterator[Shown]:
    """Code within a line that begins with the name of one of our programs and has more words; `…` is left out."""
    for span in _INLINE.findall(_FENCE.sub("", text)):
        if re.match(r"cassandra-[a-z]+ ", span):
            for words in _commands(span.replace("…", " ")):
                yield Shown(page, words)


def _lines(block: str) -> Iterator[str]:
    """Yield the lines without comments, prompts of output and the bodies of here-documents. Continued
    lines are joined.
    """
    here = None
    for line in re.sub(r"\\\n\s*", " ", block).splitlines():
        if here is not None:
            here = None if line.strip() == here else here
            continue
        found = _HERE.search(line)
        here = found[1] if found else None
        if line.strip():
            yield line.strip()


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line: each part of a pipe, and of `&&`."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:  # output that looks like a command
        return
    words: list[str] = []
    skip = False
    for token in [*tokens, ";"]:
        if skip:
            skip = False
        elif re.fullmatch(r"[|&;]+", token):
            while words and (_ASSIGNMENT.match(words[0]) or words[0] in _BEFORE):
                words.pop(0)
            if words:
                yield tuple(words)
            words = []
        elif re.fullmatch(r"[<>&]+", token):
            skip = True
        else:
            words.append(token)

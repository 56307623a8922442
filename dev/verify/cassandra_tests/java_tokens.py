"""The tokens of a Java source file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKENS = re.compile(
    r"""
      (?P<skipped>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<block>\"\"\".*?(?<!\\)\"\"\")
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<char>'(?:[^'\\\n]|\\.[0-9a-fA-F]*)')
    | (?P<number>(?:0[xX][0-9a-fA-F_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[lLfFdD]?)
    | (?P<name>[^\W\d][\w$]*)
    | (?P<mark>->|::|\+\+|--|&&|\|\||[=!<>+\-*/%&|^]=|\.\.\.|<<|[-+*/%=<>!?:;,.(){}\[\]@&|^~])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "s": " "}
_ESCAPE = re.compile(r"\\(u+([0-9a-fA-F]{4})|\n|.)", re.DOTALL)


class Token(NamedTuple):
    """One token."""

    # string, char, number, name or mark.
    kind: str
    # The text as written; of a string and char its value.
    text: str

    def is_mark(self, *texts: str) -> bool:
        return self.kind in {"mark", "name"} and self.text in texts


END = Token("end", "")


class JavaError(Exception):
    """The source is not understood."""


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens without spaces and comments. Raises JavaError."""
    at = 0
    while at < len(source):
        match = _TOKENS.match(source, at)
        if match is None or match.lastgroup is None:
            line = source.count("\n", 0, at) + 1
            raise JavaError(f"line {line}: {source[at : at + 20]!r}")
        at = match.end()
        if match.lastgroup != "skipped":
            yield _token(match.lastgroup, match[0])


def _token(kind: str, text: str) -> Token:
    if kind in {"string", "char"}:
        return Token(kind, unescaped(text[1:-1]))
    if kind == "block":
        return Token("string", unescaped(_unindented(text[3:-3])))
    return Token(kind, text)


def unescaped(text: str) -> str:
    return _ESCAPE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    if match[2]:
        return chr(int(match[2], 16))
    return "" if match[1] == "\n" else _ESCAPES.get(match[1], match[1])


def _unindented(text: str) -> str:
    """A text block's lines without the indentation that all share."""
    lines = text.split("\n")[1:]
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[depth:].rstrip() for line in lines)

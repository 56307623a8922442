"""Checks the names and the docstrings of code: `python -m dev.tools.names [PATH ...]` (make lint).

In the folders that `[names]` of dev/tools/words.toml lists, a variable, a class or a function has the field's word for
what it is, and a docstring is a sentence.
"""

from __future__ import annotations

import io
import sys
import tokenize
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dev.tools.words import RULES, Finding, print_findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CODE = (".py", ".pyx", ".pxd")
_QUOTES = ('"""', "'''")


@dataclass(frozen=True)
class NameList:
    """The names to avoid, each with what to write, and the folders where they are looked for."""

    # Folders, each with a slash at its end.
    folders: tuple[str, ...]
    # Words that name nothing, as a variable or an argument.
    variables: Mapping[str, str]
    # Class names to avoid.
    classes: Mapping[str, str]
    # Function names to avoid.
    functions: Mapping[str, str]
    # First words of docstrings.
    docstrings: Mapping[str, str]

    @classmethod
    def read(cls, file: Path = RULES) -> NameList:
        """Raises OSError or ValueError where the file cannot be read."""
        table = tomllib.loads(file.read_text(encoding="utf-8"))["names"]
        kinds = (table[kind] for kind in ("variables", "classes", "functions", "docstrings"))
        return cls(tuple(table["folders"]), *kinds)

    def checks(self, path: str) -> bool:
        """Whether the file is code in one of the folders: `path` is relative to the project's folder."""
        return path.endswith(CODE) and path.startswith(self.folders)

    def findings(self, path: str, text: str) -> list[Finding]:
        """Return the findings in a file's text, in the order of the lines."""
        return [Finding(path, line, words, write) for line, words, write in self._avoided(text)]

    def _avoided(self, text: str) -> Iterator[tuple[int, str, str]]:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        for before, token in pairwise([tokens[0], *tokens]):
            known = {"class": self.classes, "def": self.functions}.get(before.string, self.variables)
            if token.type == tokenize.NAME and token.string in known and before.string != ".":
                yield token.start[0], token.string, known[token.string]
            elif token.type == tokenize.STRING and token.string.startswith(_QUOTES):
                first = token.string[3:].partition(" ")[0]
                if first in self.docstrings:
                    yield token.start[0], first, self.docstrings[first]


def main(arguments: Sequence[str] | None = None) -> int:
    paths = sys.argv[1:] if arguments is None else arguments
    return print_findings(NameList.read(), paths, "The names and what to write: [names] in")


if __name__ == "__main__":
    sys.exit(main())

"""Finds words that plain English avoids, and says what to write: `python -m dev.tools.words [PATH ...]` (make lint).

Reads what a person reads: Markdown without its code, comments, docstrings and other strings of several words (errors,
log events, help), alerts, dashboards, pages. The words are in dev/tools/words.toml.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import click

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = project_root()
RULES = Path(__file__).with_name("words.toml")
# Stands for what is not prose, such as inline code: no rule matches across it.
CUT = "\0"
# A string of fewer words is a name, a format or a key.
FEWEST_WORDS = 3
WORD = re.compile(r"[A-Za-z]{2,}(?![\w(=\[/])")


class Rule(NamedTuple):
    """One entry of words.toml."""

    # The words to find.
    find: re.Pattern[str]
    # The words to write.
    write: str
    # The surroundings in which the words are fine.
    unless: tuple[re.Pattern[str], ...]
    # The only kind of files (`md`) that it is for; None for all kinds.
    only: str | None


class Finding(NamedTuple):
    """Words to avoid in a file."""

    # The path of the file.
    path: str
    # The number of the line, from 1.
    line: int
    # The words that were found.
    words: str
    # The words to write.
    write: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.words}"; write: {self.write}'


@dataclass(frozen=True)
class WordList:
    """The word list."""

    # The rules.
    rules: tuple[Rule, ...]
    # The paths that are not checked. A path that ends in a slash is a folder.
    exclude: tuple[str, ...]

    @classmethod
    def read(cls, file: Path = RULES) -> WordList:
        """Raises OSError or ValueError where the file cannot be read."""
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        rules = (
            Rule(_pattern(one["find"]), one["write"], tuple(map(_pattern, one.get("unless", ()))), one.get("only"))
            for one in table["rule"]
        )
        return cls(tuple(rules), (*table["code"], *table["exclude"]))

    def checks(self, path: str) -> bool:
        """Whether the file's prose is read: `path` is relative to the project's folder."""
        return reader_of(path) is not None and not any(
            path == one or (one.endswith("/") and path.startswith(one)) for one in self.exclude
        )

    def findings(self, path: str, text: str) -> list[Finding]:
        """Return the findings in a file's text, in the order of the lines."""
        reader = reader_of(path)
        if reader is None:
            return []
        prose = reader(text)
        rules = (rule for rule in self.rules if rule.only in {None, _kind(path)})
        found = ((match, rule) for rule in rules for match in _matches(rule, prose))
        return [
            Finding(path, prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), rule.write)
            for match, rule in sorted(found, key=lambda one: one[0].start())
        ]


def _pattern(find: str) -> re.Pattern[str]:
    """Whole words, the first letter in either case."""
    start = find if find.startswith(("(", "[")) else f"[{find[0].upper()}{find[0]}]{find[1:]}"
    return re.compile(rf"\b(?:{start.replace(' ', chr(92) + 's+')})\b", re.IGNORECASE if start == find else 0)


def _matches(rule: Rule, prose: str) -> Iterator[re.Match[str]]:
    fine = [span for one in rule.unless for span in _spans(one, prose)]
    for match in rule.find.finditer(prose):
        is_name = match[0].isupper()  # CQL, SQL
        if not is_name and not any(start < match.end() and match.start() < end for start, end in fine):
            yield match


def _spans(pattern: re.Pattern[str], prose: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(prose))


def reader_of(path: str) -> Callable[[str], str] | None:
    """The function that keeps only the prose of such a file; None for a file without prose."""
    return READERS.get(_kind(path))


def _kind(path: str) -> str:
    """The name's end without the dot, or a name without a dot."""
    return path.rpartition("/")[2].rpartition(".")[2]


def markdown(text: str) -> str:
    """Return the text without code and links' targets."""
    return MARKDOWN_CODE.sub(_cut, text)


def code(text: str) -> str:
    """Comments and strings of several words, without what is between backquotes or braces."""
    return _kept(CODE, text)


def java(text: str) -> str:
    """Comments and strings of several words."""
    return _kept(JAVA, text)


def plain(text: str) -> str:
    """All of it, without what is between backquotes or the braces of templates."""
    return TEMPLATE.sub(_cut, text)


MARKDOWN_CODE = re.compile(r"^( *)(```+|~~~+).*?^ *\2|`+[^`]*`+|\]\([^)\s]*\)|<[a-z/!][^>]*>", re.DOTALL | re.MULTILINE)
TEMPLATE = re.compile(r"\{[{%#].*?[}%#]\}|`+[^`]*`+", re.DOTALL)
INSERTED = re.compile(r"\{(?:[^{}\n]|\{[^{}\n]*\})*\}|`+[^`]*`+", re.DOTALL)
STRINGS = r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'"
CODE = re.compile(rf'#[^\n]*|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|{STRINGS}', re.DOTALL)
JAVA = re.compile(rf"//[^\n]*|/\*.*?\*/|{STRINGS}", re.DOTALL)
# Between two pieces of one text: lines of a comment, literals that follow each other.
JOIN = re.compile(r"[\sfr]*")
MARKS = str.maketrans("\"'#", "   ")
READERS: dict[str, Callable[[str], str]] = {
    "md": markdown,
    **dict.fromkeys(("py", "pyx", "pxd", "pyi", "toml"), code),
    "java": java,
    **dict.fromkeys(("yml", "yaml", "html", "service", "json", "Makefile", "run"), plain),
}


def _kept(pieces: re.Pattern[str], text: str) -> str:
    """The pieces that are prose, on their lines; between them a cut, or a space within one text."""
    made = []
    end = 0
    for match in pieces.finditer(text):
        between, piece = text[end : match.start()], match[0]
        made.append(_blank(between, " " if JOIN.fullmatch(between) else CUT))
        is_prose = piece[0] in "#/" or piece[:3] in {'"""', "'''"} or len(WORD.findall(piece)) >= FEWEST_WORDS
        made.append(INSERTED.sub(_cut, piece).translate(MARKS) if is_prose else _cut(match))
        end = match.end()
    return "".join(made)


def _cut(match: re.Match[str]) -> str:
    return _blank(match[0], CUT)


def _blank(text: str, mark: str) -> str:
    """The mark and the line ends of the text, so that lines keep their numbers."""
    return mark + "\n" * text.count("\n")


def project_files() -> list[str]:
    """Return the files that git knows of, relative to the project's folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


class FileCheck(Protocol):
    """A check of the project's files, one by one."""

    def checks(self, path: str) -> bool: ...
    def findings(self, path: str, text: str) -> list[Finding]: ...


def print_findings(check: FileCheck, paths: Sequence[str], hint: str) -> int:
    """Print what a check finds in the files, all of the project's if none is named. Returns the exit status."""
    found = [
        finding
        for path in paths or project_files()
        if check.checks(path)
        for finding in check.findings(path, (ROOT / path).read_text(encoding="utf-8"))
    ]
    for finding in found:
        click.echo(finding)
    if found:
        click.echo(f"{len(found)} found. {hint} {RULES.relative_to(ROOT)}", err=True)
    return 1 if found else 0


def main(arguments: Sequence[str] | None = None) -> int:
    paths = sys.argv[1:] if arguments is None else arguments
    return print_findings(WordList.read(), paths, "The words and what to write:")


if __name__ == "__main__":
    sys.exit(main())

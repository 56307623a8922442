"""The text that dev.tools.words reads in each kind of file, and its findings there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.local_stack.process.paths import project_root
from dev.tools.words import RULES, WordList, main

RULES_HERE = """
exclude = ["docs/"]
code = ["made.py"]
[[rule]]
find = "anew"
write = "again"
[[rule]]
find = "no more than"
write = "at most"
[[rule]]
find = "behind"
write = "after"
unless = ["falls? behind"]
[[rule]]
find = "(?:mend|mends)"
write = "repair"
[[rule]]
only = "md"
find = "(?-i:What) is(?=\\\\.)"
write = "it"
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> WordList:
    file = tmp_path_factory.mktemp("words") / "words.toml"
    file.write_text(RULES_HERE)
    return WordList.read(file)


def found(words: WordList, path: str, text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.words) for finding in words.findings(path, text)]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "# begins anew\n", [(1, "anew")]),
        ("a.py", "# Anew it begins, MEND\n", [(1, "Anew")]),
        ("a.py", "x = 1\n\ndef f():\n    '''One.\n\n    It begins anew.'''\n", [(6, "anew")]),
        ("a.py", "raise Error('it begins anew, and ends')\n", [(1, "anew")]),
        ("a.py", "raise Error('no more '\n   'than two of them')\n", []),  # a rule is applied to one literal
        ("a.py", "# no more\n# than two\n", [(1, "no more than")]),
        ("a.py", "a = 1  # no more\nb = 2  # than two\n", []),
        ("a.py", "# `anew` is a name\n", []),
        ("a.py", "anew = 'anew'\nf('--anew')\n", []),
        ("a.py", "f'what {anew if 1 else f(3)} is not said'\n", []),
        ("a.py", "# renewed\n", []),
        ("a.py", "# it falls behind\n", []),
        ("a.py", "# it comes behind; it falls behind\n", [(1, "behind")]),
        ("a.pyx", "cdef int anew  # begins anew\n", [(1, "anew")]),
        ("a.java", "int anew; // begins anew\n/* it\n mends */\n", [(1, "anew"), (3, "mends")]),
        ("a.toml", 'help = "it begins anew here"\n', [(1, "anew")]),
        ("a.yml", "summary: begins anew\n", [(1, "anew")]),
        ("a.html", "<p>begins anew {{ anew }}{% if anew %}</p>\n", [(1, "anew")]),
        ("a.json", '{"title": "Begins anew"}', [(1, "anew")]),
        ("Makefile", "all: ## Begin anew\n", [(1, "anew")]),
        ("a.md", "One\n\n```\nanew\n```\n\nIt begins anew\n", [(7, "anew")]),
        ("a.md", "`anew` and [a page](anew.md), anew\n", [(1, "anew")]),
        ("a.md", "It is no more\nthan two\n", [(1, "no more than")]),
        ("a.md", "What is. And what is. What is?\n", [(1, "What is")]),
        ("a.py", "# What is.\n", []),
        ("a.png", "anew", []),
    ],
)
def test_prose_of_a_file(words: WordList, path: str, text: str, expected: list[tuple[int, str]]) -> None:
    assert found(words, path, text) == expected


def test_paths_that_are_checked(words: WordList) -> None:
    paths = ["a.py", "docs/a.md", "made.py", "a.log", "tools/docs/a.md"]
    assert [path for path in paths if words.checks(path)] == ["a.py", "tools/docs/a.md"]


def test_a_finding_says_where_and_what_to_write(words: WordList) -> None:
    [finding] = words.findings("a.py", "\n# no more than two\n")
    assert str(finding) == 'a.py:2: "no more than"; write: at most'


def test_the_command_fails_on_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev/tools/menu.py"]) == 0
    folder = Path("tests/unit/dev/tools")
    file = project_root() / folder / "words_example.html"
    file.write_text("it begins " + "a" + "new")
    try:
        assert main([str(folder / file.name)]) == 1
    finally:
        file.unlink()
    assert "write: again" in capsys.readouterr().out


def test_every_rule_finds_what_it_names_and_proposes_nothing_that_it_finds() -> None:
    words = WordList.read(RULES)
    for rule in words.rules:
        assert not [found for found in words.findings("a.md", rule.write) if found.write == rule.write], rule

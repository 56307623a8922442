"""The names and docstrings that dev.tools.names finds in code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.tools.names import NameList, main

if TYPE_CHECKING:
    from pathlib import Path

LIST_HERE = """
[names]
folders = ["one/"]
variables = { each = "the thing's name" }
classes = { Said = "Documentation" }
functions = { follow = "what it follows" }
docstrings = { What = "a sentence" }
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> NameList:
    file: Path = tmp_path_factory.mktemp("names") / "words.toml"
    file.write_text(LIST_HERE)
    return NameList.read(file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for each in names:\n    print(each.name)\n", [(1, "each"), (2, "each")]),
        ("x = 1\ny = [each for each in z]\n", [(2, "each"), (2, "each")]),
        ("x.each = row.each\n", []),
        ("class Said:\n    pass\n", [(1, "Said")]),
        ("x = Said\n", []),
        ("def follow():\n    x.follow()\n", [(1, "follow")]),
        ("def follow_topic():\n    each_one = 'each'  # each\n", []),
        ('"""What it is."""\n', [(1, "What")]),
        ('def f():\n    """\n    What."""\n', []),
        ('def f():\n    """Whatever it is."""\n', []),
        ('x = "What it is"\n', []),
        ("cdef int each = 1\ncdef class Said:\n    pass\n", [(1, "each"), (2, "Said")]),
    ],
)
def test_what_is_found(names: NameList, text: str, expected: list[tuple[int, str]]) -> None:
    assert [(finding.line, finding.words) for finding in names.findings("one/a.py", text)] == expected


def test_only_code_in_the_folders_is_checked(names: NameList) -> None:
    assert names.checks("one/two/a.py")
    assert names.checks("one/a.pyx")
    assert not names.checks("two/a.py")
    assert not names.checks("one/a.md")


def test_the_project_has_none() -> None:
    assert main([]) == 0

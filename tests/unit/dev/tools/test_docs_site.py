"""The site of the docs: its menu, the links out of the pages' folder, and the warnings that fail a build."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from dev.tools.docs_site import build, menu

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guides").mkdir(parents=True)
    links = "[Install](guides/install.md#now), [make](../Makefile), [g](guides/)"
    (folder / "README.md").write_text(f"# Front\n\n{links}\n")
    (folder / "tutorial.md").write_text("# Learn\n")
    (folder / "guides" / "another.md").write_text("# Another\n\n```cql\nUPDATE t SET s = {1};\n```\n")
    (folder / "guides" / "install.md").write_text("# Install\n\n## Now\n")
    (folder / "guides" / "README.md").write_text("# Guides\n\nThe pattern [^/] is text.\n")
    return folder


def test_menu(pages: Path) -> None:
    assert [(section.caption, names) for section, names in menu(pages)] == [
        ("", ["tutorial"]),
        ("Guides", ["guides/install", "guides/README", "guides/another"]),
    ]


def test_a_site(pages: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    assert build(out, pages)
    front = (out / "index.html").read_text()
    assert 'href="guides/install.html#now"' in front
    assert 'href="guides/README.html"' in front
    assert "<code" in front.partition("make (")[2][:30], "a path of the repository is shown and not linked"
    assert ">Another</a>" in front, "the menu has each page"
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*\s(?:src|href)=\"(?:https?:)?//", front), "it works offline"
    assert (out / "searchindex.js").is_file()


def test_broken_links_fail_the_build(pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = ["guides/gone.md", "guides/install.md#lost", "#nowhere", "images/gone.png"]
    links = [f"{'!' if link.endswith('png') else ''}[it]({link})" for link in broken]
    (pages / "tutorial.md").write_text("# Learn\n\n" + "\n\n".join(links) + "\n")
    assert not build(tmp_path / "site", pages)
    warnings = [line for line in capsys.readouterr().err.splitlines() if "WARNING" in line]
    assert len(warnings) == len(broken)
    for link, warning in zip(broken, sorted(warnings, key=lambda one: int(one.split(":")[1])), strict=True):
        assert link.rpartition("#")[2] in warning

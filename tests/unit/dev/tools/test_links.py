"""Every relative link of every Markdown file leads to a file that git knows, and to a heading where it names one."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest
from markdown_it import MarkdownIt

from dev.local_stack.process.paths import project_root
from dev.tools.words import project_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

ROOT = project_root()
PARSER = MarkdownIt("commonmark").enable("table")
# An anchor that HTML in a page sets.
HTML_ANCHOR = re.compile(r"<[a-z][^>]*\s(?:id|name)=\"([^\"]+)\"")
HTML_TARGET = re.compile(r"<[a-z][^>]*\s(?:href|src|srcset)=\"([^\"]+)\"")
NOT_OF_ANCHORS = re.compile(r"[^\w\- ]")


class Page(NamedTuple):
    """The links of a page, with the line of each link's paragraph, and the anchors of its headings."""

    links: list[tuple[int, str]]
    anchors: set[str]


def read_page(text: str) -> Page:
    """Anchors as Git hosts make them: lower case, spaces to dashes, `-1` at a heading that comes again."""
    links: list[tuple[int, str]] = []
    anchors: set[str] = set()
    seen: Counter[str] = Counter()
    tokens = PARSER.parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block":
            anchors.update(HTML_ANCHOR.findall(token.content))
            links += [(line, target) for target in HTML_TARGET.findall(token.content)]
        if token.type != "inline":
            continue
        for child in token.children or ():
            anchors.update(HTML_ANCHOR.findall(child.content) if child.type == "html_inline" else ())
            links += [(line, target) for target in targets(child)]
        if before is not None and before.type == "heading_open":
            name = anchor(token)
            anchors.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return Page(links, anchors)


def targets(token: Token) -> Iterator[str]:
    if token.type == "html_inline":
        yield from HTML_TARGET.findall(token.content)
    for name in ("href", "src"):
        if isinstance(target := token.attrGet(name), str):
            yield target


def anchor(heading: Token) -> str:
    """The anchor of the heading's text as it is shown, without marks of emphasis, code and links."""
    shown = "".join(child.content for child in heading.children or () if child.type in {"text", "code_inline"})
    return NOT_OF_ANCHORS.sub("", shown.strip().lower()).replace(" ", "-")


@cache
def files() -> frozenset[str]:
    return frozenset(project_files())


@cache
def folders() -> frozenset[str]:
    return frozenset(posixpath.dirname(name[:end]) for name in files() for end in range(1, len(name) + 1)) | {"."}


@cache
def page_at(path: str) -> Page:
    return read_page((ROOT / path).read_text(encoding="utf-8"))


def broken(path: str, page: Page) -> Iterator[str]:
    """Each link of the page that leads nowhere, with its place."""
    for line, link in page.links:
        target, _, name = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if target and found not in files() and found not in folders():
            yield f"{path}:{line}: {link} (no such file)"
        elif name and (found.endswith(".md") or not target):
            there = page_at(found) if target else page
            if name not in there.anchors:
                yield f"{path}:{line}: {link} (no such heading)"


@pytest.mark.parametrize("path", sorted(name for name in files() if name.endswith(".md")))
def test_links_lead_somewhere(path: str) -> None:
    assert not list(broken(path, page_at(path)))


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("# Two words", "two-words"),
        ("## CDC-006: a `code_name`, *and* [a link](x.md)!", "cdc-006-a-code_name-and-a-link"),
        ("### A & B", "a--b"),
        ("Under\n---", "under"),
    ],
)
def test_anchors(heading: str, expected: str) -> None:
    assert read_page(heading).anchors == {expected}
    assert read_page(f"{heading}\n\n{heading}").anchors == {expected, f"{expected}-1"}


def test_broken_links_are_found() -> None:
    text = """
[a](nope.md) [b](#nope) [c](../Makefile) [d](guides/#) [e](https://host.invalid/x)

![f](images/nope.png) <img src="images/gone.svg"> [`g`](#here)

```
[in code](nope.md)
```

| [h](../tests) |
| --- |
| [i](README.md/nope) |

# Here
"""
    found = [place.split(": ", 1)[1].split()[0] for place in broken("docs/page.md", read_page(text))]
    assert found == ["nope.md", "#nope", "images/nope.png", "images/gone.svg", "README.md/nope"]

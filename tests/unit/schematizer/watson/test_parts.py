"""Markdown, differences and figures in words, without pages."""

from __future__ import annotations

from datetime import timedelta
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.clients.registry.views import Element
from schematizer.model.base import now
from schematizer.watson.differences import Difference, Kind, differences
from schematizer.watson.markdown import to_html
from schematizer.watson.rendering import ago, lag, rate, short


def element(
    path: str, kind: str = "int", doc: str | None = None, *, nullable: bool = False, own: str | None = None
) -> Element:
    return Element(
        path=path,
        type=kind,
        source_type=own,
        is_nullable=nullable,
        is_key=False,
        doc=doc,
        owner=None,
        is_pii=False,
        field_id=None,
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a *b* **c** `d`", "<p>a <em>b</em> <strong>c</strong> <code>d</code></p>\n"),
        ("# Title", "<h4>Title</h4>\n"),
        ("[x](https://a.example/b)", '<p><a href="https://a.example/b" rel="nofollow noopener">x</a></p>\n'),
        ("~~old~~", "<p><s>old</s></p>\n"),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>\n"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"),
        ("[x](data:text/html,y)", "<p>[x](data:text/html,y)</p>\n"),
        ("![x](https://a.example/b.png)", "<p></p>\n"),
    ],
)
def test_markdown(text: str, html: str) -> None:
    assert str(to_html(text)) == html


FRAGMENTS = st.sampled_from(
    (
        *("<script>", "</script>", "<img src=x onerror=alert(1)>", "<svg/onload=x>", "<a href='JaVaScRiPt:x'>"),
        *("[a](javascript:x)", "[a](<javascript:x>)", "<style>", "![](x)", "`", "```\n", "&#x3c;script&#x3e;"),
        *("| a |\n|---|\n", "\n\n", "<!--", "* ", "> "),
    )
)


@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=12).map("".join))
@settings(max_examples=200, deadline=None)
def test_markdown_is_always_safe(text: str) -> None:
    html = str(to_html(text)).lower()
    assert not [tag for tag in ("<script", "<img", "<svg", "<style", "<iframe", "<!--") if tag in html], html
    assert 'href="javascript' not in html


@pytest.mark.parametrize(
    "text",
    [
        "|a" * 24_000 + "\n" + "|-" * 24_000,
        "|a" * 100 + "\n" + "|-" * 100 + "\n" + "|\n" * 2_000,  # each row of one character has 100 cells
        "- <b>\n" * 5_000,
    ],
)
def test_a_text_that_costs_much_is_shown_as_it_is(text: str) -> None:
    """Other requests wait for whoever renders a note."""
    started = process_time()
    html = str(to_html(text))
    assert process_time() - started < 0.2
    assert html.startswith("<pre>")
    assert "<b>" not in html


def test_a_large_table_is_still_a_table() -> None:
    assert "<td>" in to_html("|a" * 10 + "\n" + "|-" * 10 + "\n" + ("|b" * 10 + "\n") * 300)


def test_differences_in_words() -> None:
    before = [element("a"), element("b", doc="old"), element("c"), element("gone", nullable=True)]
    after = [element("new", "string"), element("a", "long"), element("b", doc="new"), element("c", nullable=True)]
    assert differences(before, after) == [
        Difference(Kind.ADDED, "new", None, "string"),
        Difference(Kind.TYPE, "a", "int", "long"),
        Difference(Kind.DOC, "b", "old", "new"),
        Difference(Kind.TYPE, "c", "int", "int, may be null"),
        Difference(Kind.REMOVED, "gone", "int, may be null", None),
    ]
    assert differences(before, before) == []
    assert [difference.kind for difference in differences(before, before[::-1])] == [Kind.ORDER]
    assert differences([element("a")], [element("a", doc="x")])[0].before == "no docs"
    assert differences([element("a", own="int")], [element("a", own="varint")])[0].after == "varint (int)"


PATHS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(PATHS, PATHS)
def test_every_field_that_comes_or_goes_is_named_once(before: list[str], after: list[str]) -> None:
    found = differences([element(path) for path in before], [element(path) for path in after])
    assert sorted(difference.path for difference in found if difference.kind is Kind.ADDED) == sorted(
        set(after) - set(before)
    )
    assert sorted(difference.path for difference in found if difference.kind is Kind.REMOVED) == sorted(
        set(before) - set(after)
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "just now"), (59, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"), (86_400 * 400, "1 year ago")],
)
def test_times(seconds: int, words: str) -> None:
    assert ago(now() - timedelta(seconds=seconds)) == words


def test_figures() -> None:
    assert (rate(None), rate(0.25), rate(12_345.6)) == ("unknown", "0.2 /s", "12,346 /s")
    assert (lag(None), lag(0), lag(12_345)) == ("unknown", "0", "12,345")
    assert short("a" * 240) == "a" * 240
    assert short("word " * 100).endswith("word …")

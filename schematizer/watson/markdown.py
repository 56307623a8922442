"""Markdown to HTML that is safe to show: what people write may hold anything."""

from __future__ import annotations

from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

_PARSER = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_TAGS = {
    *(
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "strong",
    ),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
_HEADINGS = {"h1": "h4", "h2": "h5", "h3": "h6", "h4": "h6", "h5": "h6"}
"""A page's own headings come first."""
_MAX_LENGTH = 8_000
_MAX_CELLS = 5_000
"""Of a table that has each line as a row, and as many columns as the line with most bars: a row of one character
becomes as many cells.
"""
_RENDERED_AT_ONCE = 256


def to_html(text: str) -> Markup:
    """Sanitised: no HTML of the writer's, no images, no scripts; links to http, https and mailto only. A text that is
    long, or could be a large table, is shown as it is: rendering it would keep other requests waiting.
    """
    return _rendered(text) if _is_cheap(text) else plain(text)


def plain(text: str) -> Markup:
    """The text as it is written."""
    return Markup("<pre>{}</pre>\n").format(text)


def _is_cheap(text: str) -> bool:
    if len(text) > _MAX_LENGTH:
        return False
    lines = text.splitlines()
    columns = max((line.count("|") for line in lines), default=0)
    return columns * len(lines) <= _MAX_CELLS


@lru_cache(maxsize=_RENDERED_AT_ONCE)
def _rendered(text: str) -> Markup:
    tokens = _PARSER.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _HEADINGS.get(token.tag, token.tag)
    rendered = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return Markup(  # noqa: S704 - nh3 has just sanitised it
        nh3.clean(rendered, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes=_SCHEMES, link_rel="nofollow noopener")
    )

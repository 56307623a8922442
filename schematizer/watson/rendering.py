"""Templates to responses, with the headers that keep a page to itself."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.responses import HTMLResponse

from schematizer.model.base import now
from schematizer.watson import markdown
from schematizer.watson.differences import type_words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache, private",
}
_UNITS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"))
_SHORT = 240
_RENDERED_CHARACTERS = 40_000
"""Of the notes of one page: later ones are shown as they are written."""


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ago=ago,
        count=count,
        lag=lag,
        markdown=markdown.to_html,
        plain=markdown.plain,
        rate=rate,
        short=short,
        type_words=type_words,
    )
    made.globals["rendered_characters"] = _RENDERED_CHARACTERS
    made.globals["versions"] = {path.name: _digest(path) for path in STATIC.iterdir()}
    return made


class Templates:
    def __init__(self) -> None:
        self._environment = environment()

    def response(
        self, template: str, context: Mapping[str, object], status: int = 200, *, is_of_login: bool = False
    ) -> HTMLResponse:
        """`is_of_login`: a browser must not show it after someone has signed out."""
        rendered = self._environment.get_template(template).render(context)
        headers = {**HEADERS, "Cache-Control": "no-store"} if is_of_login else HEADERS
        return HTMLResponse(rendered, status, headers=headers)


def ago(moment: datetime) -> str:
    """Return how long ago it was: `3 days ago`, `just now`."""
    seconds = max(timedelta(), now() - moment).total_seconds()
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{count(int(seconds // length), unit)} ago"
    return "just now"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 topic`, `2,000 topics`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def rate(offsets_a_second: float | None) -> str:
    if offsets_a_second is None:
        return "unknown"
    return f"{offsets_a_second:,.1f} /s" if offsets_a_second < 100 else f"{offsets_a_second:,.0f} /s"


def lag(offsets: int | None) -> str:
    return "unknown" if offsets is None else f"{offsets:,}"


def short(text: str) -> str:
    """The beginning of a long text: pages stay small."""
    return text if len(text) <= _SHORT else text[:_SHORT].rsplit(" ", 1)[0] + " …"


def _digest(path: Path) -> str:
    """A browser keeps a file until its content changes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]

"""Headers of every answer that tell a browser what it must not do, and the answer to a refused request."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.types import Message

    from schematizer.access.hook import Caller
    from schematizer.errors import CatalogueError

Header = tuple[bytes, bytes]

_PAGE = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_NO_PAGE = b"default-src 'none'; frame-ancestors 'none'"
_ALWAYS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_TLS_ALWAYS: Header = (b"strict-transport-security", b"max-age=31536000")
_LOGIN_WANTED = b'Basic realm="schema registry", charset="UTF-8"', b'Bearer realm="schema registry"'


def answer_headers(start: Message, request: Request, caller: Caller) -> list[Header]:
    """Return the headers to add, which the answer does not have yet. Caches do not keep what a login may see."""
    given = {name.lower(): value for name, value in start.get("headers", [])}
    is_page = given.get(b"content-type", b"").startswith(b"text/html")
    added = [*_ALWAYS, (b"content-security-policy", _PAGE if is_page else _NO_PAGE)]
    if caller.is_https:
        added.append(_TLS_ALWAYS)
    if caller.actor is not None and not caller.actor.is_anonymous:
        added.append((b"cache-control", b"no-store" if is_page else b"private, no-cache"))
    result = [header for header in added if header[0] not in given]
    result += [(b"set-cookie", cookie.encode("latin-1")) for cookie in caller.cookies]
    if start["status"] == 401 and not _is_browser(request):
        result += [(b"www-authenticate", value) for value in _LOGIN_WANTED]
    if caller.retry_after is not None:
        result.append((b"retry-after", str(max(math.ceil(caller.retry_after), 1)).encode()))
    return result


def refusal_messages(error: CatalogueError) -> Iterator[Message]:
    """Yield an answer that clients of both interfaces read: Confluent's error_code and message, the catalogue's error,
    message and fix. The connection is closed, as the body may not have been read.
    """
    content = {
        "error_code": error.refusal.value,
        "error": error.refusal.word,
        "message": error.problem,
        "fix": error.fix,
    }
    body = json.dumps(content).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    yield {"type": "http.response.start", "status": error.refusal.value, "headers": headers}
    yield {"type": "http.response.body", "body": body}


def _is_browser(request: Request) -> bool:
    """A browser would open its own dialog, which has no way to sign out."""
    return "text/html" in request.headers.get("accept", "")

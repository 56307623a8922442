"""HTTP as Confluent's server speaks it: HEAD, a slash at the end of a path, the default context in a path, and the
content types of requests and answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.confluent import contexts, errors
from schematizer.confluent.responses import CONTENT_TYPE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OFFERED = (CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json")
"""The content types of answers, the preferred one first."""
_TAKEN = frozenset({*_OFFERED, "application/octet-stream"})
_FIRST_SEGMENTS = frozenset({b"", b"schemas", b"subjects", b"compatibility", b"config", b"mode", b"contexts", b"v1"})
"""Of the paths of Confluent's API; the other interfaces have others."""
_CONTEXT_SEGMENTS = 4


class ConfluentHttp:
    """An ASGI application around the others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("raw_path", quote(scope["path"]).encode())  # a server may leave it out
        answer = _Answer(scope, send)
        if scope["raw_path"].split(b"/", 2)[1] in _FIRST_SEGMENTS:
            _shorten(scope)
            answer.content_type = answered_type(_header(scope, b"accept")) or CONTENT_TYPE
        if scope["method"] == "HEAD":
            scope["method"] = "GET"
            await self._app(scope, receive, answer.send_head)
        elif answer.content_type == CONTENT_TYPE:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, answer.send_typed)


class _Answer:
    """Sends the answer to a request."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.content_type = CONTENT_TYPE
        self._scope = scope
        self._send = send

    async def send_head(self, message: Message) -> None:
        """Send the answer to GET without its body, as one to HEAD."""
        self._scope["method"] = "HEAD"
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self.send_typed(message)

    async def send_typed(self, message: Message) -> None:
        """Send the answer with the content type that the request prefers."""
        if message["type"] == "http.response.start" and self.content_type != CONTENT_TYPE:
            headers = [
                (name, self.content_type.encode() if value == CONTENT_TYPE.encode() else value)
                for name, value in message["headers"]
            ]
            message = {**message, "headers": headers}
        await self._send(message)


def _shorten(scope: Scope) -> None:
    """Take a slash at the path's end away, and the default context at its beginning."""
    raw: bytes = scope["raw_path"]
    shortened = raw[:-1] if raw.endswith(b"/") and len(raw) > 1 else raw
    segments = shortened.split(b"/", _CONTEXT_SEGMENTS - 1)
    is_in_context = segments[1] == b"contexts" and len(segments) == _CONTEXT_SEGMENTS
    if is_in_context and contexts.is_default(unquote(segments[2].decode("latin-1"))):
        shortened = b"/" + segments[3]
    if shortened != raw:
        scope["raw_path"] = shortened
        scope["path"] = unquote(shortened.decode("latin-1"))


async def check_accept(request: Request) -> None:
    """RegistryError 406 if the client takes none of the content types of answers."""
    accept = request.headers.get("accept", "")
    if answered_type(accept) is None:
        raise errors.RegistryError(406, "HTTP 406 Not Acceptable")


def check_content_type(request: Request) -> None:
    """RegistryError 415 for a body that is not sent as JSON. A request may leave its content type out."""
    given = _media_type(request.headers.get("content-type", ""))
    if given and given not in _TAKEN:
        raise errors.RegistryError(
            415, f"HTTP 415 Unsupported Media Type: send the body as {CONTENT_TYPE} or application/json, not as {given}"
        )


def has_shape_of_route(scope: Scope) -> bool:
    """Whether the path has as many segments as its route: a slash within a subject is written %2F."""
    route = scope.get("route")
    return route is None or route.path.count("/") == scope["raw_path"].count(b"/")


def answered_type(accept: str) -> str | None:
    """The content type of the answer to a request with this header; None if it accepts none of them."""
    if not accept or accept == "*/*":
        return CONTENT_TYPE
    qualities = [(_media_type(part), _quality(part)) for part in accept.split(",")]
    best, best_quality = None, 0.0
    for offered in _OFFERED:
        quality = max((quality for media, quality in qualities if _includes(media, offered)), default=0.0)
        if quality > best_quality:
            best, best_quality = offered, quality
    return best


def _includes(media: str, offered: str) -> bool:
    return media in (offered, "application/*", "*/*", "*")


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _quality(part: str) -> float:
    """The preference for a content type of an Accept header, from 0 to 1."""
    for parameter in part.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _header(scope: Scope, name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)

"""Which role each request of Confluent's API needs, and in which namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.access import Access, Role
from schematizer.topic_names import parse_subject, parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable

_REGISTER = "/versions"
_ADMINISTERED = ("/config", "/mode")


def guard(access: Access, pii_prefix: str) -> Callable[[Request], None]:
    """A dependency of every route."""

    def check(request: Request) -> None:
        access.require(request, role_of(request), namespace_of(request, pii_prefix))

    return check


def role_of(request: Request) -> Role:
    """Looking up and comparing a schema only reads, although it is a POST."""
    path = request.scope["route"].path
    if request.method in ("GET", "HEAD"):
        return Role.READER
    if path.startswith(_ADMINISTERED) or request.query_params.get("permanent", "").lower() in ("true", "1"):
        return Role.ADMIN
    if request.method == "POST" and (path.startswith("/compatibility") or not path.endswith(_REGISTER)):
        return Role.READER
    return Role.WRITER


def namespace_of(request: Request, pii_prefix: str) -> str | None:
    """The namespace of the path's subject; None for a path, or a subject, without one."""
    subject = request.path_params.get("subject")
    found = parse_subject(subject) if subject else None
    return parse_topic(found[0], pii_prefix).namespace if found else None

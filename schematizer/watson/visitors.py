"""Find who looks at a page, and where people sign in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from schematizer.access import Role
from schematizer.access.csrf import SAFE_METHODS
from schematizer.access.hook import caller_of
from schematizer.errors import Refusal
from schematizer.watson.links import Links

if TYPE_CHECKING:
    from starlette.requests import Request


class Visitor(NamedTuple):
    """The visitor of a page."""

    # The name of the login; None without one.
    name: str | None = None
    # The link to sign in, where that allows more.
    sign_in: str | None = None
    # The path to which the form that ends a session is sent.
    sign_out: str | None = None


def visitor_of(request: Request, sign_in_path: str | None, status: int = 200) -> Visitor:
    """The findings of the access hook about the request so far. `sign_in_path`: where signing in is mounted, None for
    nowhere. `status`: of the page.
    """
    if sign_in_path is None:
        return Visitor()
    caller = caller_of(request)
    actor = caller.actor
    if actor is not None and not actor.is_anonymous:
        return Visitor(actor.name, sign_out=f"{sign_in_path}/out" if caller.has_session else None)
    is_limited = actor is not None and not actor.grants.allows(Role.ADMIN, None)
    if not is_limited and status != Refusal.UNAUTHENTICATED.value:
        return Visitor()
    return Visitor(sign_in=f"{sign_in_path}/?{urlencode({'next': _address(request)})}")


def _address(request: Request) -> str:
    """Return the address to come back to; the front page for a form, as no form is sent a second time."""
    if request.method not in SAFE_METHODS:
        return Links(request.scope.get("root_path", "")).front()
    path, query = quote(request.scope["path"]), request.scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path

"""Protects forms from forgery with a token that only the registry's own pages can know.

The token is an HMAC of a cookie that scripts and other sites cannot read: of the session, or of a random cookie for
those who are not signed in. A page writes `token(request)` into a hidden field named FIELD. The route that takes the
form has `Depends(check)`, or calls `require_token`, before anything asks for a writer.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING

from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.access.hook import caller_of
from schematizer.errors import CatalogueError, Refusal

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

FIELD = "csrf_token"
HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_FORM_COOKIE = "schematizer-form"
_SESSION_COOKIE = "schematizer-session"
_FORM_SECONDS = 24 * 3600


def cookie_name(request: HTTPConnection, name: str) -> str:
    """Return the cookie's name; over TLS with the prefix that makes browsers accept the cookie from this host alone."""
    return f"__Host-{name}" if caller_of(request).is_https else name


def session_cookie(request: HTTPConnection) -> str:
    """The value of the session's cookie, or empty."""
    return request.cookies.get(cookie_name(request, _SESSION_COOKIE), "")


def set_session_cookie(request: HTTPConnection, value: str, seconds: float) -> None:
    """An empty value removes it."""
    set_cookie(request, _SESSION_COOKIE, value, seconds if value else 0)


def set_cookie(request: HTTPConnection, name: str, value: str, seconds: float, same_site: str = "Lax") -> None:
    """The answer carries a cookie that scripts cannot read. `same_site` Lax: a link from elsewhere keeps the session,
    a form from elsewhere does not have it.
    """
    caller, made = caller_of(request), SimpleCookie()
    full = cookie_name(request, name)
    made[full] = value
    attributes = {"path": "/", "httponly": True, "samesite": same_site, "max-age": int(seconds)}
    for attribute, wanted in {**attributes, "secure": caller.is_https}.items():
        made[full][attribute] = wanted
    caller.cookies.append(made[full].OutputString())


def token(request: Request) -> str:
    """Return the value of the hidden field FIELD (or the header HEADER) of this request's page."""
    value = _base(request)
    if not value:
        value = secrets.token_urlsafe(32)
        request.cookies[cookie_name(request, _FORM_COOKIE)] = value  # for a second form of the same page
        set_cookie(request, _FORM_COOKIE, value, _FORM_SECONDS, "Strict")
    return _token_of(value)


async def check(request: Request) -> None:
    """A dependency of every route that takes a form; CatalogueError FORBIDDEN."""
    if request.method in SAFE_METHODS:
        return
    given = request.headers.get(HEADER, "")
    if not given:
        form = await request.form()
        field = form.get(FIELD, "")
        given = field if isinstance(field, str) else ""
    require_token(request, given)


def require_token(request: Request, given: str) -> None:
    """Refuse with FORBIDDEN unless `given` is the token of the request's cookie."""
    value, caller = _base(request), caller_of(request)
    if not value or not hmac.compare_digest(_token_of(value).encode(), given.encode()):
        caller.refused = "forged-form"
        raise CatalogueError(
            Refusal.FORBIDDEN, "The form's token is missing or old.", "Load the page again, and send the form again."
        )
    caller.is_form_checked = True


class CookieForms:
    """The tokens of Watson's forms, by the two functions above."""

    def token(self, request: Request) -> str:
        return token(request)

    def check(self, request: Request, token: str) -> None:
        require_token(request, token)


def _base(request: HTTPConnection) -> str:
    return session_cookie(request) or request.cookies.get(cookie_name(request, _FORM_COOKIE), "")


def _token_of(cookie: str) -> str:
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()

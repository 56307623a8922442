"""The pages on which people sign in with a browser, and out."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from schematizer.access import Actor, csrf
from schematizer.access.hook import caller_of
from schematizer.errors import CatalogueError, Refusal
from schematizer.model.security_tables import Result
from schematizer.security.audit import AuditEvent
from schematizer.security.code_flow import CALLBACK, CodeFlow
from schematizer.security.tokens import InvalidTokenError

if TYPE_CHECKING:
    from schematizer.security.audit import AuditLog
    from schematizer.security.authenticator import Authenticator
    from schematizer.security.sessions import Sessions

PATH = "/sign-in"
"""Where the application is mounted."""
_FLOW_COOKIE = "schematizer-sign-in"
_FLOW_SECONDS = 600
_LOCAL_PATH = re.compile(r"/(?![/\\])[\x21-\x7e]*")
_STYLE = """\
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 24rem; margin: 10vh auto; padding: 0 1rem; }
label, input, button, .button { display: block; box-sizing: border-box; width: 100%; }
input, button, .button { margin: 0.25rem 0 1rem; padding: 0.5rem; font: inherit; }
.button { text-align: center; border: 1px solid; border-radius: 0.25rem; }
[role=alert] { border-left: 0.25rem solid #c00; padding-left: 0.75rem; }
"""


class SignIn:
    """The parts that the routes share."""

    def __init__(self, access: Authenticator, sessions: Sessions, audit: AuditLog, flow: CodeFlow | None) -> None:
        self.access = access
        self.flow = flow
        self._sessions = sessions
        self._audit = audit

    def start(self, request: Request, actor: Actor, after: str, api_key_id: int | None = None) -> Response:
        """A new session, whatever session there was."""
        self.end_session(request)
        cookie = self._sessions.start(actor.name, actor.grants, api_key_id)
        csrf.set_session_cookie(request, cookie, self._sessions.seconds)
        self._record(request, actor, "sign in")
        return RedirectResponse(local_path(after), status_code=303)

    def end(self, request: Request) -> Response:
        actor = self.access.identify(request)
        self.end_session(request)
        csrf.set_session_cookie(request, "", 0)
        if not actor.is_anonymous:
            self._record(request, actor, "sign out")
        return RedirectResponse(f"{PATH}/", status_code=303)

    def end_session(self, request: Request) -> None:
        cookie = csrf.session_cookie(request)
        if cookie:
            self._sessions.end(cookie)

    def page(self, request: Request, after: str, problem: str = "", status: int = 200) -> Response:
        alert = f'<p role="alert">{escape(problem)}</p>' if problem else ""
        next_ = escape(local_path(after))
        query = urlencode({"next": local_path(after)})
        oidc = f'<p><a class="button" href="{PATH}/oidc?{query}">Sign in with OIDC</a></p>' if self.flow else ""
        form = (
            f'<form method="post" action="{PATH}/">'
            f'<input type="hidden" name="{csrf.FIELD}" value="{csrf.token(request)}">'
            f'<input type="hidden" name="next" value="{next_}">'
            '<label for="key">API key id</label>'
            '<input id="key" name="key_id" autocomplete="username" required>'
            '<label for="secret">Secret</label>'
            '<input id="secret" name="secret" type="password" autocomplete="current-password" required>'
            '<button type="submit">Sign in</button></form>'
        )
        body = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign in</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="stylesheet" href="{PATH}/style.css"></head>'
            f"<body><main><h1>Sign in to the schema registry</h1>{alert}{oidc}{form}</main></body></html>"
        )
        return HTMLResponse(body, status_code=status, headers={"Cache-Control": "no-store"})

    def require_flow(self) -> CodeFlow:
        """Return the flow of OIDC. Only an application that has one has routes that ask for it."""
        assert self.flow is not None
        return self.flow

    def _record(self, request: Request, actor: Actor, action: str) -> None:
        address = caller_of(request).address
        event = AuditEvent(actor=actor.name, address=address, action=action, about=PATH, result=Result.DONE)
        self._audit.record(event)


def sign_in_application(access: Authenticator, sessions: Sessions, audit: AuditLog, flow: CodeFlow | None) -> FastAPI:
    app = FastAPI(title="Sign in", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.sign_in = SignIn(access, sessions, audit, flow)
    app.include_router(with_keys)
    if flow is not None:
        app.include_router(with_oidc)
    app.add_exception_handler(CatalogueError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


async def sign_in_of(request: Request) -> SignIn:
    """Return what the application keeps for its routes."""
    return _sign_in(request)


def _sign_in(request: Request) -> SignIn:
    found: SignIn = request.app.state.sign_in
    return found


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, CatalogueError)
    return _sign_in(request).page(request, "/", f"{error.problem} {error.fix}", error.refusal.value)


def _invalid(request: Request, _error: Exception) -> Response:
    return _sign_in(request).page(request, "/", "A field of the form is missing.", Refusal.INVALID.value)


SignInDep = Annotated[SignIn, Depends(sign_in_of)]

with_keys = APIRouter()
with_oidc = APIRouter()


@with_keys.get("/")
def sign_in_page(shared: SignInDep, request: Request, next: str = "/") -> Response:  # noqa: A002 - the name in the URL
    return shared.page(request, next)


@with_keys.get("/style.css")
def style() -> Response:
    return PlainTextResponse(_STYLE, media_type="text/css")


@with_keys.post("/", dependencies=[Depends(csrf.check)])
def sign_in(
    shared: SignInDep,
    request: Request,
    key_id: Annotated[str, Form()],
    secret: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",  # noqa: A002 - as above
) -> Response:
    try:
        found = shared.access.verify_key(request, key_id.strip(), secret.strip())
    except CatalogueError as error:
        return shared.page(request, next, error.problem, error.refusal.value)
    return shared.start(request, Actor(found.actor, found.grants), next, found.row_id)


@with_keys.post("/out", dependencies=[Depends(csrf.check)])
def sign_out(shared: SignInDep, request: Request) -> Response:
    return shared.end(request)


@with_oidc.get("/oidc")
def begin(shared: SignInDep, request: Request, next: str = "/") -> Response:  # noqa: A002 - as above
    begun = shared.require_flow().begin(local_path(next))
    csrf.set_cookie(request, _FLOW_COOKIE, begun.cookie, _FLOW_SECONDS)
    return RedirectResponse(begun.url, status_code=303)


@with_oidc.get(CALLBACK.removeprefix(PATH))
def finish(shared: SignInDep, request: Request, code: str = "", state: str = "", iss: str | None = None) -> Response:
    cookie = request.cookies.get(csrf.cookie_name(request, _FLOW_COOKIE), "")
    csrf.set_cookie(request, _FLOW_COOKIE, "", 0)
    try:
        actor, after = shared.require_flow().finish(cookie, code, state, iss)
    except InvalidTokenError as error:
        raise shared.access.failed(request, f"sign-in-{error.reason}") from error
    if not actor.grants.every:
        raise CatalogueError(
            Refusal.FORBIDDEN, f"{actor.name} has no role here.", "Ask an administrator of the registry for one."
        )
    return shared.start(request, actor, after)


def local_path(path: str) -> str:
    """The path, or / for what would lead to another site."""
    return path if _LOCAL_PATH.fullmatch(path) else "/"

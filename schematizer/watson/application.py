"""Watson's application: its pages, its files, and its errors as pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from schematizer.errors import CatalogueError, Refusal
from schematizer.model.database import reason_of
from schematizer.model.kept import refusal_of
from schematizer.watson.links import Links
from schematizer.watson.pages import changes, clients, interface, searching, sources, topics, writing
from schematizer.watson.rendering import STATIC
from schematizer.watson.site import keep_site, site_of_app
from schematizer.watson.visitors import visitor_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from schematizer.watson.site import Site


def watson_application(site: Site, count_database_error: Callable[[], None]) -> FastAPI:
    app = FastAPI(title="Watson", docs_url=None, redoc_url=None, openapi_url=None)
    keep_site(app, site)
    app.state.count_database_error = count_database_error
    app.include_router(sources.router)
    app.include_router(topics.router)
    app.include_router(changes.router)
    app.include_router(clients.router)
    app.include_router(interface.router)
    app.include_router(searching.router)
    app.include_router(writing.router)
    app.mount("/static", _KeptFiles(directory=STATIC))
    app.add_exception_handler(CatalogueError, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(SQLAlchemyError, _database_error)
    return app


class _KeptFiles(StaticFiles):
    """A page names a file with the hash of its content: a browser may keep it."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def _answer(request: Request, problem: str, fix: str, status: int) -> Response:
    site = site_of_app(request.app)
    visitor = visitor_of(request, site.sign_in_path, status)
    context = {
        "to": Links(request.scope.get("root_path", "")),
        "crumbs": [],
        "token": site.forms.token(request) if visitor.sign_out else None,
        "may_write": False,
        "search_text": "",
        "visitor": visitor,
        "problem": problem,
        "fix": fix,
        "status": status,
    }
    return site.templates.response("error.html", context, status, is_of_login=visitor.name is not None)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, CatalogueError)
    return _answer(request, error.problem, error.fix, error.refusal.value)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(request, f"{error.detail}.", "Search for it, or begin at the front page.", error.status_code)


def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = "; ".join(
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in error.errors()
    )
    return _answer(request, f"{problems}.", "Go back and correct it.", Refusal.INVALID.value)


def _database_error(request: Request, error: Exception) -> Response:
    if isinstance(error, DataError):
        problem = f"The registry cannot keep what was sent: {refusal_of(error)}."
        return _answer(request, problem, "Go back and correct it.", Refusal.INVALID.value)
    request.app.state.count_database_error()
    structlog.get_logger(__name__).error("database failed", path=request.url.path, reason=reason_of(error))
    return _answer(
        request, "The registry's database failed.", "See the registry's log; try again.", Refusal.UNAVAILABLE.value
    )

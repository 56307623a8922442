"""The REST application: its routers, and its errors as {"error": …, "message": …, "fix": …}."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException

from schematizer.api import (
    administration,
    clients,
    deployments,
    lineage,
    plans,
    records,
    registering,
    sources,
    targets,
    topics,
    usage,
)
from schematizer.api.parts import Parts, keep_parts, parts_of_app
from schematizer.avro_schemas.parsing import InvalidSchemaError
from schematizer.errors import CatalogueError, Refusal
from schematizer.model.database import reason_of
from schematizer.model.kept import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import Request

    from schematizer.access import Access
    from schematizer.measures.sampler import Measures
    from schematizer.security.service import Security
    from schematizer.service import Catalogue

_DESCRIPTION = "Namespaces, sources, topics, schemas and their elements; who produces and consumes them."


def rest_application(
    catalogue: Catalogue,
    access: Access,
    measures: Measures,
    count_database_error: Callable[[], None],
    security: Security | None = None,
) -> FastAPI:
    """Return the REST application. Its description is at openapi.json. It has no pages of its own, as those would load
    scripts from elsewhere.
    """
    app = FastAPI(title="cassandra-schematizer", version="1", description=_DESCRIPTION, docs_url=None, redoc_url=None)
    keep_parts(app, Parts(catalogue, access, measures, security, count_database_error))
    if security is not None:
        app.include_router(administration.router)
    app.include_router(sources.router)
    app.include_router(topics.router)
    app.include_router(registering.router)
    app.include_router(targets.router)
    app.include_router(clients.router)
    app.include_router(records.router)
    app.include_router(deployments.router)
    app.include_router(plans.router)
    app.include_router(usage.router)
    app.include_router(lineage.router)
    app.add_exception_handler(CatalogueError, _refused)
    app.add_exception_handler(InvalidSchemaError, _invalid_schema)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(SQLAlchemyError, _database_error)
    return app


def _answer(error: CatalogueError) -> JSONResponse:
    content = {"error": error.refusal.word, "message": error.problem, "fix": error.fix}
    return JSONResponse(content, status_code=error.refusal.value)


def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, CatalogueError)
    return _answer(error)


def _invalid_schema(_request: Request, error: Exception) -> JSONResponse:
    """One that was read, and that is too large for what was asked."""
    return _answer(CatalogueError(Refusal.INVALID, f"Invalid schema: {error}.", "Register a smaller one."))


def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}."
    content = {"error": "http", "message": message, "fix": "See openapi.json for the paths and their methods."}
    return JSONResponse(content, status_code=error.status_code)


def _invalid_request(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = "; ".join(
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in error.errors()
    )
    return _answer(CatalogueError(Refusal.INVALID, f"{problems}.", "See openapi.json for what each path takes."))


def _database_error(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, DataError):
        problem = f"The registry cannot keep what was sent: {refusal_of(error)}."
        return _answer(CatalogueError(Refusal.INVALID, problem, "Send a shorter text or a smaller number."))
    parts_of_app(request.app).count_database_error()
    structlog.get_logger(__name__).error("database failed", path=request.url.path, reason=reason_of(error))
    return _answer(
        CatalogueError(Refusal.UNAVAILABLE, "The registry's database failed.", "See the registry's log; try again.")
    )

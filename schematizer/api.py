"""The HTTP service: Confluent's Schema Registry API over a Store, with its responses and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from schematizer import errors, routes
from schematizer.database import reason_of
from schematizer.metrics import MeasuredRequests
from schematizer.responses import RegistryResponse

if TYPE_CHECKING:
    from fastapi import Request

    from schematizer.metrics import RegistryMetrics
    from schematizer.store import Store


def application(store: Store, metrics: RegistryMetrics) -> FastAPI:
    """The service; it has no pages of its own, as those would load scripts from elsewhere."""
    app = FastAPI(
        title="cassandra-schematizer",
        default_response_class=RegistryResponse,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    for router in routes.routers(store):
        app.include_router(router)
    app.add_exception_handler(errors.RegistryError, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)

    def database_error(request: Request, error: Exception) -> RegistryResponse:
        metrics.count_database_error()
        return _database_error(request, error)

    app.add_exception_handler(SQLAlchemyError, database_error)
    app.add_middleware(MeasuredRequests, metrics)
    return app


def _answer(error: errors.RegistryError) -> RegistryResponse:
    return RegistryResponse({"error_code": error.error_code, "message": error.message}, status_code=error.status)


def _refused(_request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, errors.RegistryError)
    return _answer(error)


def _http_error(_request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, HTTPException)
    return _answer(errors.RegistryError(error.status_code, f"HTTP {error.status_code} {error.detail}"))


def _invalid_request(_request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _answer(errors.unprocessable(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"))


def _database_error(request: Request, error: Exception) -> RegistryResponse:
    structlog.get_logger(__name__).error("database failed", path=request.url.path, reason=reason_of(error))
    return _answer(errors.database_failed())

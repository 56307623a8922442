"""The HTTP service: Confluent's Schema Registry API over a Store, with its responses and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.exceptions import HTTPException

from schematizer.avro_schemas.parsing import InvalidSchemaError
from schematizer.confluent import errors, parts, routes
from schematizer.confluent.guard import Guard
from schematizer.confluent.http import ConfluentHttp, check_accept, has_shape_of_route
from schematizer.confluent.responses import RegistryResponse
from schematizer.errors import CatalogueError
from schematizer.model.database import reason_of
from schematizer.model.kept import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import Request

    from schematizer.access import Access
    from schematizer.confluent.store import Store


def confluent_application(
    store: Store, access: Access, pii_prefix: str, count_database_error: Callable[[], None]
) -> FastAPI:
    """The service; it has no pages of its own, as those would load scripts from elsewhere."""
    guard = Guard(store, access, pii_prefix)
    app = FastAPI(
        title="cassandra-schematizer",
        default_response_class=RegistryResponse,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(guard.check), Depends(check_accept)],
    )
    parts.keep_parts(app, store, guard, count_database_error)
    app.add_middleware(ConfluentHttp)
    for router in routes.ROUTERS:
        app.include_router(router)
    app.add_exception_handler(errors.RegistryError, _refused)
    app.add_exception_handler(CatalogueError, _no_access)
    app.add_exception_handler(InvalidSchemaError, _invalid_schema)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(SQLAlchemyError, _database_error)
    return app


def _answer(error: errors.RegistryError) -> RegistryResponse:
    return RegistryResponse({"error_code": error.error_code, "message": error.message}, status_code=error.status)


def _refused(_request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, errors.RegistryError)
    return _answer(error)


def _no_access(_request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, CatalogueError)
    return _answer(errors.RegistryError(error.refusal.value, error.problem))


def _invalid_schema(_request: Request, error: Exception) -> RegistryResponse:
    """One that was read, and that is too large for what was asked."""
    return _answer(errors.invalid_schema(str(error)))


def _http_error(request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 405 and not has_shape_of_route(request.scope):
        return _answer(errors.not_found())
    return _answer(errors.RegistryError(error.status_code, f"HTTP {error.status_code} {error.detail}"))


def _invalid_request(_request: Request, error: Exception) -> RegistryResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["loc"][0] == "path":  # as JAX-RS answers
        return _answer(errors.not_found())
    return _answer(errors.unprocessable(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"))


def _database_error(request: Request, error: Exception) -> RegistryResponse:
    if isinstance(error, DataError):
        return _answer(errors.unprocessable(f"The registry cannot keep what was sent: {refusal_of(error)}"))
    parts.count_database_error(request.app)
    structlog.get_logger(__name__).error("database failed", path=request.url.path, reason=reason_of(error))
    return _answer(errors.database_failed())

"""/keys, /audit and /me. Only clients that are logged in can reach keys and the audit log."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads annotations
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from schematizer.access import Role
from schematizer.api.parts import SecurityDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.numbers import Cursor  # noqa: TC001 - FastAPI reads annotations
from schematizer.security.audit import AuditEntry  # noqa: TC001 - FastAPI reads annotations
from schematizer.security.keys import ApiKey, NewApiKey  # noqa: TC001 - as above

Limit = Annotated[int, Query(ge=1, le=10_000)]


def require_administrator(security: SecurityDep, request: Request) -> None:
    """Raise CatalogueError unless an administrator of all namespaces is logged in."""
    security.access.require_login(request, Role.ADMIN)


logins = APIRouter()
administration = APIRouter(dependencies=[Depends(require_administrator)])


class KeyBody(BaseModel):
    """`name`: who uses the key. `grants`: `ROLE:NAMESPACE`. `expires_at`: None for a key that does not expire."""

    model_config = ConfigDict(extra="forbid")

    # Who uses the key.
    name: str
    # The grants, as `ROLE:NAMESPACE`.
    grants: Annotated[list[str], Field(min_length=1, max_length=100)]
    # When the key ends; None for a key that does not expire.
    expires_at: datetime | None = None


class Me(BaseModel):
    """The actor of the request."""

    # The actor's name.
    actor: str
    # The grants, as `ROLE:NAMESPACE`.
    grants: list[str]


@logins.get("/me")
def me(security: SecurityDep, request: Request) -> Me:
    """The login's name and grants."""
    actor = security.access.require_somewhere(request, Role.READER)
    return Me(actor=actor.name, grants=[str(grant) for grant in actor.grants.every])


@administration.get("/keys")
def every_key(security: SecurityDep) -> list[ApiKey]:
    """All API keys, without their secrets."""
    return security.keys.every()


@administration.post("/keys", status_code=201)
def create_key(security: SecurityDep, body: KeyBody, request: Request, response: Response) -> NewApiKey:
    """Makes an API key. Its secret is shown only here."""
    response.headers["Cache-Control"] = "no-store"
    return security.keys.create(body.name, body.grants, body.expires_at, by=security.access.identify(request).name)


@administration.delete("/keys/{key_id}")
def revoke_key(security: SecurityDep, key_id: str, request: Request) -> ApiKey:
    """Ends an API key."""
    return security.keys.revoke(key_id, by=security.access.identify(request).name)


@administration.get("/audit")
def audit(security: SecurityDep, since: Cursor = 0, actor: str | None = None, limit: Limit = 1000) -> list[AuditEntry]:
    """Records of the audit log after the id `since`, oldest first."""
    return security.audit.entries(since, actor, limit)


router = APIRouter()
router.include_router(logins)
router.include_router(administration)

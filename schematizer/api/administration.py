"""/keys, /audit and /me. Only clients that are logged in can reach keys and the audit log."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads annotations
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from schematizer.access import Role
from schematizer.numbers import Cursor  # noqa: TC001 - FastAPI reads annotations
from schematizer.security.audit import AuditEntry  # noqa: TC001 - FastAPI reads annotations
from schematizer.security.keys import ApiKey, NewApiKey  # noqa: TC001 - as above

if TYPE_CHECKING:
    from schematizer.security.service import Security

Limit = Annotated[int, Query(ge=1, le=10_000)]


class KeyBody(BaseModel):
    """`name`: who uses the key. `grants`: `ROLE:NAMESPACE`. `expires_at`: None for a key that does not expire."""

    model_config = ConfigDict(extra="forbid")

    name: str
    grants: Annotated[list[str], Field(min_length=1, max_length=100)]
    expires_at: datetime | None = None


class Me(BaseModel):
    """The actor of the request."""

    actor: str
    grants: list[str]


def router(security: Security) -> APIRouter:
    routes = APIRouter()
    routes.include_router(_open_to_all_logins(security))
    routes.include_router(_administration(security))
    return routes


def _open_to_all_logins(security: Security) -> APIRouter:
    routes = APIRouter()

    @routes.get("/me")
    def me(request: Request) -> Me:
        """The login's name and grants."""
        actor = security.access.require_somewhere(request, Role.READER)
        return Me(actor=actor.name, grants=[str(grant) for grant in actor.grants.every])

    return routes


def _administration(security: Security) -> APIRouter:
    access, keys = security.access, security.keys

    def administers(request: Request) -> None:
        access.require_login(request, Role.ADMIN)

    routes = APIRouter(dependencies=[Depends(administers)])

    @routes.get("/keys")
    def every_key() -> list[ApiKey]:
        """All API keys, without their secrets."""
        return keys.every()

    @routes.post("/keys", status_code=201)
    def create_key(body: KeyBody, request: Request, response: Response) -> NewApiKey:
        """Makes an API key. Its secret is shown only here."""
        response.headers["Cache-Control"] = "no-store"
        return keys.create(body.name, body.grants, body.expires_at, by=access.identify(request).name)

    @routes.delete("/keys/{key_id}")
    def revoke_key(key_id: str, request: Request) -> ApiKey:
        """Ends an API key."""
        return keys.revoke(key_id, by=access.identify(request).name)

    @routes.get("/audit")
    def audit(since: Cursor = 0, actor: str | None = None, limit: Limit = 1000) -> list[AuditEntry]:
        """Records of the audit log after the id `since`, oldest first."""
        return security.audit.entries(since, actor, limit)

    return routes

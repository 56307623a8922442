"""The hook that every request passes, and what is known of the caller of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from schematizer.access.roles import EVERYTHING, Grants, Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import HTTPConnection, Request

ANONYMOUS = "anonymous"
_SCOPE_KEY = "schematizer.caller"


@dataclass(frozen=True, slots=True)
class Actor:
    """The maker of a request."""

    # The name that the catalogue's changes and the audit log contain.
    name: str
    # The rights.
    grants: Grants = EVERYTHING

    @property
    def is_anonymous(self) -> bool:
        return self.name == ANONYMOUS


@dataclass(slots=True)
class Caller:
    """The caller, as far as it is known while a request is answered."""

    # The address that the request came from.
    address: str = ""
    # Whether the request came over TLS.
    is_https: bool = False
    # The maker of the request; None until it is known.
    actor: Actor | None = None
    # Whether a cookie of a session was valid.
    has_session: bool = False
    # The highest role that was asked for.
    role: Role | None = None
    # The namespace in which it was asked for; None for all.
    namespace: str | None = None
    # Why the request was refused, for the metrics.
    refused: str = ""
    # More words about that, for the audit log.
    reason: str = ""
    # The id of its record in the audit log.
    audit_id: int | None = None
    # The seconds after which the caller may try again.
    retry_after: float | None = None
    # Whether the token of a form was checked.
    is_form_checked: bool = False
    # Values of Set-Cookie that the answer carries.
    cookies: list[str] = field(default_factory=list)

    def asked(self, role: Role, namespace: str | None) -> None:
        if self.role is None or role >= self.role:
            self.role, self.namespace = role, namespace


def caller_of(request: HTTPConnection) -> Caller:
    """The caller that the first layer put there; mounted applications see the same one."""
    found = request.scope.get(_SCOPE_KEY)
    if not isinstance(found, Caller):
        client = request.scope.get("client")
        found = Caller(address=client[0] if client else "", is_https=request.scope.get("scheme") == "https")
        request.scope[_SCOPE_KEY] = found
    return found


class Access(Protocol):
    """Decides on each request. Several threads use one. CatalogueError UNAUTHENTICATED, FORBIDDEN or TOO_MANY."""

    def identify(self, request: Request) -> Actor:
        """The actor who makes the request, with any rights or none."""
        ...

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:
        """The actor of a request that needs this role in a namespace (None: in all of them)."""
        ...

    def require_one(self, request: Request, role: Role, namespaces: Iterable[str | None]) -> Actor:
        """The actor of a request that needs this role in one of the namespaces."""
        ...

    def require_somewhere(self, request: Request, role: Role) -> Actor:
        """The actor of a request that needs this role in any namespace."""
        ...

    def require_login(self, request: Request, role: Role) -> Actor:
        """Require the role in all namespaces, as `require` does, and always require a login."""
        ...


class OpenAccess:
    """Allows every request."""

    def identify(self, request: Request) -> Actor:  # noqa: ARG002 - Access's
        return Actor(ANONYMOUS)

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:  # noqa: ARG002 - as above
        return self.identify(request)

    def require_one(self, request: Request, role: Role, namespaces: Iterable[str | None]) -> Actor:  # noqa: ARG002 - as above
        return self.identify(request)

    def require_somewhere(self, request: Request, role: Role) -> Actor:  # noqa: ARG002 - as above
        return self.identify(request)

    def require_login(self, request: Request, role: Role) -> Actor:  # noqa: ARG002 - as above
        return self.identify(request)

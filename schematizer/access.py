"""Who may do what: the hook that every request passes. Today everyone may do everything (OpenAccess)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from starlette.requests import Request

ANONYMOUS = "anonymous"


class Role(IntEnum):
    """What a request needs; a higher role includes the lower ones."""

    READER = 1
    WRITER = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a request. `name` stands in the catalogue's changes."""

    name: str


class Access(Protocol):
    """Decides on each request. Several threads use one."""

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:
        """The actor of a request that needs this role in a namespace (None: in all of them). CatalogueError
        UNAUTHENTICATED or FORBIDDEN.
        """
        ...


class OpenAccess:
    """Allows every request."""

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:  # noqa: ARG002 - Access's
        return Actor(ANONYMOUS)

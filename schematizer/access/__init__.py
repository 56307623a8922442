"""Access control: roles, grants, the hook that checks every request, and the token against forged forms."""

from __future__ import annotations

from schematizer.access.hook import ANONYMOUS, Access, Actor, OpenAccess
from schematizer.access.roles import EVERYTHING, NOTHING, Grant, Grants, Role, grant_from_text

__all__ = [
    "ANONYMOUS",
    "EVERYTHING",
    "NOTHING",
    "Access",
    "Actor",
    "Grant",
    "Grants",
    "OpenAccess",
    "Role",
    "grant_from_text",
]

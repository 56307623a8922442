"""Roles in namespaces, and the text in which settings, commands and requests give them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

EVERY = "*"
_NAMESPACE = re.compile(r"\*|[A-Za-z0-9_-][A-Za-z0-9._-]*(\.\*)?")


class Role(IntEnum):
    """The role that a request needs; a higher role includes the lower ones."""

    READER = 1
    WRITER = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class Grant(NamedTuple):
    """A role in some namespaces."""

    # The role.
    role: Role
    # One namespace (`cdc.shop`), all whose names begin with its words (`cdc.*`), or all (`*`).
    namespace: str

    def __str__(self) -> str:
        return f"{self.role.word}:{self.namespace}"

    def covers(self, namespace: str | None) -> bool:
        """None asks for all namespaces."""
        if self.namespace == EVERY:
            return True
        if namespace is None:
            return False
        if self.namespace.endswith(".*"):
            return namespace.startswith(self.namespace[:-1])
        return namespace == self.namespace


@dataclass(frozen=True, slots=True)
class Grants:
    """The rights of an actor."""

    # The grants. Without any, nothing is allowed.
    every: tuple[Grant, ...] = ()

    def allows(self, role: Role, namespace: str | None) -> bool:
        """Whether the role is granted in the namespace (None: in all namespaces)."""
        return any(grant.role >= role and grant.covers(namespace) for grant in self.every)

    def allows_each(self, role: Role, namespaces: Collection[str]) -> bool:
        """Whether the role is granted in each of them. Where there is none, it must be granted in all namespaces."""
        if not namespaces:
            return self.allows(role, None)
        return all(self.allows(role, namespace) for namespace in namespaces)

    def allows_somewhere(self, role: Role) -> bool:
        return any(grant.role >= role for grant in self.every)


NOTHING = Grants()
EVERYTHING = Grants((Grant(Role.ADMIN, EVERY),))


def grant_from_text(text: str) -> Grant:
    """Parse `ROLE:NAMESPACE`, as in `writer:cdc.shop`. ValueError says what is wrong."""
    word, colon, namespace = text.partition(":")
    roles = {role.word: role for role in Role}
    if not colon or word not in roles:
        raise ValueError(f"{text!r} is not ROLE:NAMESPACE with the role {', '.join(roles)}, as in writer:cdc.shop")
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"{namespace!r} in {text!r} is not a namespace, as in cdc.shop, cdc.* or *")
    return Grant(roles[word], namespace)

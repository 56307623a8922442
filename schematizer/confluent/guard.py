"""Check the role that each request of Confluent's API needs, and in which namespaces."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.access import Access, Actor, Role
from schematizer.confluent.contexts import without_default
from schematizer.confluent.errors import RegistryError
from schematizer.topic_names import parse_subject, parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from schematizer.confluent.store import Store


class Scope(Enum):
    """The namespaces in which the role is needed: that of the path's subject, one of those that use the path's schema,
    any (the actor's grants choose what the answer holds, or it says nothing of schemas), or all.
    """

    SUBJECT = "subject"
    SCHEMA = "schema"
    ANY = "any"
    ALL = "all"


class Rule(NamedTuple):
    """The rights that a request needs."""

    # The role.
    role: Role
    # The namespaces in which it is needed.
    scope: Scope


_SUBJECT = "/subjects/{subject:path}"
_VERSIONS = f"{_SUBJECT}/versions"
_COMPATIBILITY = "/compatibility/subjects/{subject:path}/versions"
_ID = "/schemas/ids/{schema_id}"
_ID_DIGITS = re.compile(r"[0-9]{1,10}")

RULES: dict[tuple[str, str], Rule] = {
    ("GET", "/"): Rule(Role.READER, Scope.ANY),
    ("GET", "/contexts"): Rule(Role.READER, Scope.ANY),
    ("GET", "/contexts/{context:path}"): Rule(Role.READER, Scope.ANY),
    ("POST", "/contexts/{context:path}"): Rule(Role.READER, Scope.ANY),
    ("PUT", "/contexts/{context:path}"): Rule(Role.READER, Scope.ANY),
    ("DELETE", "/contexts/{context:path}"): Rule(Role.READER, Scope.ANY),
    ("GET", "/v1/metadata/id"): Rule(Role.READER, Scope.ANY),
    ("GET", "/v1/metadata/version"): Rule(Role.READER, Scope.ANY),
    ("GET", "/schemas/types"): Rule(Role.READER, Scope.ANY),
    ("GET", "/schemas"): Rule(Role.READER, Scope.ANY),
    ("GET", _ID): Rule(Role.READER, Scope.SCHEMA),
    ("GET", f"{_ID}/schema"): Rule(Role.READER, Scope.SCHEMA),
    ("GET", f"{_ID}/versions"): Rule(Role.READER, Scope.SCHEMA),
    ("GET", f"{_ID}/subjects"): Rule(Role.READER, Scope.SCHEMA),
    ("GET", "/schemas/guids/{guid}"): Rule(Role.READER, Scope.ALL),
    ("GET", "/subjects"): Rule(Role.READER, Scope.ANY),
    # Looking up and comparing a schema only reads, although it is a POST.
    ("POST", _SUBJECT): Rule(Role.READER, Scope.SUBJECT),
    ("DELETE", _SUBJECT): Rule(Role.WRITER, Scope.SUBJECT),
    ("GET", _VERSIONS): Rule(Role.READER, Scope.SUBJECT),
    ("POST", _VERSIONS): Rule(Role.WRITER, Scope.SUBJECT),
    ("GET", f"{_VERSIONS}/{{version}}"): Rule(Role.READER, Scope.SUBJECT),
    ("DELETE", f"{_VERSIONS}/{{version}}"): Rule(Role.WRITER, Scope.SUBJECT),
    ("GET", f"{_VERSIONS}/{{version}}/schema"): Rule(Role.READER, Scope.SUBJECT),
    ("GET", f"{_VERSIONS}/{{version}}/referencedby"): Rule(Role.READER, Scope.SUBJECT),
    ("POST", _COMPATIBILITY): Rule(Role.READER, Scope.SUBJECT),
    ("POST", f"{_COMPATIBILITY}/{{version}}"): Rule(Role.READER, Scope.SUBJECT),
    ("GET", "/config"): Rule(Role.READER, Scope.ANY),
    ("PUT", "/config"): Rule(Role.ADMIN, Scope.ALL),
    ("DELETE", "/config"): Rule(Role.ADMIN, Scope.ALL),
    ("GET", "/config/{subject:path}"): Rule(Role.READER, Scope.SUBJECT),
    ("PUT", "/config/{subject:path}"): Rule(Role.ADMIN, Scope.SUBJECT),
    ("DELETE", "/config/{subject:path}"): Rule(Role.ADMIN, Scope.SUBJECT),
    ("GET", "/mode"): Rule(Role.READER, Scope.ANY),
    ("PUT", "/mode"): Rule(Role.ADMIN, Scope.ALL),
    ("GET", "/mode/{subject:path}"): Rule(Role.READER, Scope.SUBJECT),
    ("PUT", "/mode/{subject:path}"): Rule(Role.ADMIN, Scope.SUBJECT),
    ("DELETE", "/mode/{subject:path}"): Rule(Role.ADMIN, Scope.SUBJECT),
}
"""The rules by method and route. A route that is missing here needs an administrator of all namespaces."""
_UNKNOWN = Rule(Role.ADMIN, Scope.ALL)


class Guard:
    """Asks for the rights of each request, and says what of a list its actor may see."""

    def __init__(self, store: Store, access: Access, pii_prefix: str) -> None:
        self._store = store
        self._access = access
        self._pii_prefix = pii_prefix

    def check(self, request: Request) -> None:
        """A dependency of every route."""
        rule = self._rule_of(request)
        match rule.scope:
            case Scope.ALL:
                self._access.require(request, rule.role, None)
            case Scope.ANY:
                self._access.require_somewhere(request, rule.role)
            case Scope.SUBJECT:
                self._access.require(request, rule.role, self.namespace_of(request.path_params["subject"]))
            case Scope.SCHEMA:
                self._check_schema(request, rule.role)

    def sees(self, request: Request) -> Callable[[str], bool]:
        """Whether the actor may read a subject."""
        actor: Actor = self._access.identify(request)
        if actor.grants.allows(Role.READER, None):
            return lambda _: True
        return lambda subject: actor.grants.allows(Role.READER, self.namespace_of(subject))

    def namespace_of(self, subject: str) -> str | None:
        """None for a subject that names no topic: only those have it who may do the same in all namespaces."""
        found = parse_subject(without_default(subject))
        return parse_topic(found[0], self._pii_prefix).namespace if found else None

    def _rule_of(self, request: Request) -> Rule:
        rule = RULES.get((request.method, request.scope["route"].path), _UNKNOWN)
        if rule.role is Role.WRITER and request.query_params.get("permanent", "").lower() not in ("", "false", "0"):
            return Rule(Role.ADMIN, rule.scope)
        return rule

    def _check_schema(self, request: Request, role: Role) -> None:
        """Refuse a schema that the actor may not read. Actors who may not read everything get the same answer for a
        schema that does not exist, and for an id that is written in another way than its digits: the route may
        understand `+1`, `1.0` or `00000000001`.
        """
        if self._access.identify(request).grants.allows(role, None):
            self._access.require_somewhere(request, role)
            return
        schema_id = request.path_params["schema_id"]
        namespaces = self._namespaces_of(int(schema_id)) if _ID_DIGITS.fullmatch(schema_id) else set()
        self._access.require_one(request, role, namespaces)

    def _namespaces_of(self, schema_id: int) -> set[str | None]:
        try:
            found = {self.namespace_of(subject) for subject, _ in self._store.uses(schema_id, deleted=True)}
        except RegistryError:
            return set()
        return found | {parse_topic(topic, self._pii_prefix).namespace for topic in self._store.topics(schema_id)}

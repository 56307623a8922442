"""Access to a registry with logins: API keys, OIDC tokens, sessions, and what is open to everyone."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, NamedTuple

import structlog

from schematizer.access import ANONYMOUS, Actor, Grant, Grants, Role
from schematizer.access.csrf import HEADER, SAFE_METHODS, require_token, session_cookie
from schematizer.access.hook import Caller, caller_of
from schematizer.access.roles import EVERY
from schematizer.errors import CatalogueError, Refusal
from schematizer.model.security_tables import Result
from schematizer.security.audit import AuditEvent
from schematizer.security.keys import KEY_PREFIX
from schematizer.security.limits import TokenBuckets
from schematizer.security.secrets import parts_of
from schematizer.security.tokens import Claims, InvalidTokenError, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from schematizer.security.audit import AuditLog
    from schematizer.security.keys import ApiKeys, VerifiedKey
    from schematizer.security.policy import Policy
    from schematizer.security.sessions import Sessions

_LOGIN = "Log in with an API key (Basic or Bearer) or with a token of the registry's OIDC issuer."


class Bearers(NamedTuple):
    """The parts that verify tokens of OIDC."""

    # Verifies the tokens.
    tokens: Tokens
    # Gives the grants of their claims.
    claims: Claims


class Limits(NamedTuple):
    """The limits of requests."""

    # The limit of an actor's requests; None where nothing is limited.
    actors: TokenBuckets | None
    # Counts failed logins by address.
    failures: TokenBuckets


class Authenticator:
    """An Access. A write is in the audit log before it begins."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a login is made of
        self,
        policy: Policy,
        keys: ApiKeys,
        sessions: Sessions,
        bearers: Bearers | None,
        audit: AuditLog,
        limits: Limits,
    ) -> None:
        self._policy = policy
        self._keys = keys
        self._sessions = sessions
        self._bearers = bearers
        self._audit = audit
        self._limits = limits

    def identify(self, request: Request) -> Actor:
        caller = caller_of(request)
        if caller.actor is None:
            caller.actor = self._with_open_reads(self._actor(request, caller))
            self._limit(caller)
        return caller.actor

    def require(self, request: Request, role: Role, namespace: str | None) -> Actor:
        actor = self.identify(request)
        return self._checked(request, role, namespace, is_allowed=actor.grants.allows(role, namespace))

    def require_one(self, request: Request, role: Role, namespaces: Iterable[str | None]) -> Actor:
        actor = self.identify(request)
        is_allowed = actor.grants.allows(role, None) or any(
            actor.grants.allows(role, namespace) for namespace in namespaces
        )
        return self._checked(request, role, None, is_allowed=is_allowed)

    def require_somewhere(self, request: Request, role: Role) -> Actor:
        actor = self.identify(request)
        return self._checked(request, role, None, is_allowed=actor.grants.allows_somewhere(role))

    def require_login(self, request: Request, role: Role) -> Actor:
        actor = self.identify(request)
        is_allowed = not actor.is_anonymous and actor.grants.allows(role, None)
        return self._checked(request, role, None, is_allowed=is_allowed)

    def verify_key(self, request: Request, key_id: str, secret: str) -> VerifiedKey:
        """Return the verified key. CatalogueError UNAUTHENTICATED or TOO_MANY."""
        caller = caller_of(request)
        found = self._keys.verify(key_id, secret)
        if found is None:
            raise self._failed(caller, "key")
        return found

    def failed(self, request: Request, reason: str) -> CatalogueError:
        """A login by other means failed; the reason is for the log."""
        return self._failed(caller_of(request), reason)

    def _checked(self, request: Request, role: Role, namespace: str | None, *, is_allowed: bool) -> Actor:
        caller, actor = caller_of(request), self.identify(request)
        caller.asked(role, namespace)
        if not is_allowed:
            raise self._refused(caller, actor, role, namespace)
        if role >= Role.WRITER:
            self._check_form(request, caller)
            self._begin_audit(request, caller, actor)
        return actor

    def _actor(self, request: Request, caller: Caller) -> Actor:
        scheme, _, credential = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "basic":
                key_id, secret = parts_of(_basic(credential), ":")
                return self._key_actor(request, key_id, secret)
            case "bearer":
                return self._bearer(request, caller, credential.strip())
            case "":
                return self._session(request, caller) or Actor(ANONYMOUS, self._policy.anonymous)
            case _:
                raise self._failed(caller, "scheme")

    def _with_open_reads(self, actor: Actor) -> Actor:
        """A login never reads less than those who did not log in."""
        if actor.grants.allows(Role.READER, None) or not self._policy.anonymous.allows(Role.READER, None):
            return actor
        return Actor(actor.name, Grants((*actor.grants.every, Grant(Role.READER, EVERY))))

    def _key_actor(self, request: Request, key_id: str, secret: str) -> Actor:
        found = self.verify_key(request, key_id, secret)
        return Actor(found.actor, found.grants)

    def _bearer(self, request: Request, caller: Caller, token: str) -> Actor:
        if token.startswith(KEY_PREFIX):
            return self._key_actor(request, *parts_of(token, "."))
        if self._bearers is None:
            raise self._failed(caller, "no-issuer")
        try:
            return self._bearers.claims.actor(self._bearers.tokens.claims(token))
        except InvalidTokenError as error:
            raise self._failed(caller, f"token-{error.reason}") from error

    def _session(self, request: Request, caller: Caller) -> Actor | None:
        cookie = session_cookie(request)
        actor = self._sessions.actor(cookie) if cookie else None
        caller.has_session = actor is not None
        return actor

    def _check_form(self, request: Request, caller: Caller) -> None:
        """A browser sends the cookie of a session by itself: only the token shows that the page was ours."""
        if caller.has_session and not caller.is_form_checked and request.method not in SAFE_METHODS:
            require_token(request, request.headers.get(HEADER, ""))

    def _limit(self, caller: Caller) -> None:
        assert caller.actor is not None
        if self._limits.actors is None or caller.actor.is_anonymous:
            return
        wait = self._limits.actors.wait(caller.actor.name)
        if wait:
            caller.refused, caller.retry_after = "rate", wait
            raise too_many()

    def _begin_audit(self, request: Request, caller: Caller, actor: Actor) -> None:
        """A request that everyone may make leaves no name; the catalogue's changes have it."""
        if actor.is_anonymous or caller.audit_id is not None:
            return
        event = AuditEvent(
            actor=actor.name,
            address=caller.address,
            action=action_of(request),
            about=request.scope["path"],
            namespace=caller.namespace,
            result=Result.STARTED,
        )
        caller.audit_id = self._audit.record(event)

    def _failed(self, caller: Caller, reason: str) -> CatalogueError:
        """One message for all reasons: it must not say which ids exist."""
        wait = self._limits.failures.wait(caller.address)
        if wait:
            caller.refused, caller.retry_after = "failed-logins", wait
            return too_many()
        caller.refused, caller.reason = "login", reason
        structlog.get_logger(__name__).info("login failed", address=caller.address, reason=reason)
        return CatalogueError(Refusal.UNAUTHENTICATED, "The login failed.", _LOGIN)

    def _refused(self, caller: Caller, actor: Actor, role: Role, namespace: str | None) -> CatalogueError:
        if actor.is_anonymous:
            caller.refused = "no-login"
            return CatalogueError(Refusal.UNAUTHENTICATED, "This needs a login.", _LOGIN)
        caller.refused = "role"
        where = "all namespaces" if namespace is None else f"the namespace {namespace}"
        problem = f"{actor.name} is not a {role.word} of {where}."
        return CatalogueError(Refusal.FORBIDDEN, problem, "Ask an administrator of the registry for that grant.")


def too_many() -> CatalogueError:
    return CatalogueError(Refusal.TOO_MANY, "There are too many requests.", "Wait as long as Retry-After says.")


def action_of(request: Request) -> str:
    """The method and the route, with the names of its parameters."""
    route = getattr(request.scope.get("route"), "path", None)
    path = request.scope["path"] if route is None else f"{request.scope.get('root_path', '')}{route}"
    return f"{request.method} {path}"


def _basic(credential: str) -> str:
    try:
        return base64.b64decode(credential.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""

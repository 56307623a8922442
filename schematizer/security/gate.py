"""The first layer of the service: limits, headers, the audit log and what browsers must not do from other sites.

An ASGI application around the others, which it protects from requests that are too many, too large or too slow.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from anyio import to_thread
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request

from schematizer.access import ANONYMOUS
from schematizer.access.csrf import SAFE_METHODS
from schematizer.access.hook import Caller, caller_of
from schematizer.errors import CatalogueError, Refusal
from schematizer.model.security_tables import Result
from schematizer.security.audit import AuditEvent
from schematizer.security.authenticator import action_of, too_many
from schematizer.security.headers import answer_headers, refusal_messages
from schematizer.security.limits import TokenBuckets, network_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from schematizer.security.audit import AuditLog
    from schematizer.security.policy import Policy

_REFUSALS_RECORDED_A_SECOND = 20.0
"""The limit for all callers: one that is always refused must not fill the database. Metrics count every refusal."""
_ALL = "all"


class Bounds:
    """`body_bytes`; `body_seconds`: to receive it; `request_seconds`: to answer."""

    def __init__(self, body_bytes: int, body_seconds: float, request_seconds: float) -> None:
        self.body_bytes = body_bytes
        self.body_seconds = body_seconds
        self.request_seconds = request_seconds


class Gate:
    """One for each service. `count_refusal`: gets a word for each request that is refused here or further in."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a request passes
        self,
        app: ASGIApp,
        policy: Policy,
        bounds: Bounds,
        addresses: TokenBuckets | None,
        audit: AuditLog,
        count_refusal: Callable[[str], None],
    ) -> None:
        self._app = app
        self._policy = policy
        self._bounds = bounds
        self._addresses = addresses
        self._audit = audit
        self._count_refusal = count_refusal
        self._recorded = TokenBuckets(_REFUSALS_RECORDED_A_SECOND, _REFUSALS_RECORDED_A_SECOND, 1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        caller = caller_of(request)
        caller.address = network_of(caller.address)
        answer = _Answer(self, request, caller, send)
        try:
            self._check(request, caller)
            await self._run(scope, _Body(receive, self._bounds, answer), answer)
        except CatalogueError as error:
            await answer.refuse(error)

    def _check(self, request: Request, caller: Caller) -> None:
        wait = 0.0 if self._addresses is None else self._addresses.wait(caller.address)
        if wait:
            caller.refused, caller.retry_after = "rate", wait
            raise too_many()
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._bounds.body_bytes:
            raise _too_large(caller, self._bounds)
        if not self._policy.knows_host(request.headers.get("host", "")):
            caller.refused = "host"
            raise CatalogueError(
                Refusal.FORBIDDEN,
                "The request's Host header does not name this registry.",
                "Set schematizer.public_url to the URL that clients use.",
            )
        if request.method not in SAFE_METHODS and self._is_from_elsewhere(request):
            caller.refused = "cross-origin"
            raise CatalogueError(
                Refusal.FORBIDDEN,
                "A page of another site sent this request.",
                "Send it from the registry's own pages. Set schematizer.public_url if a proxy changes the Host header.",
            )

    def _is_from_elsewhere(self, request: Request) -> bool:
        """Programs send neither header; browsers send one that a page cannot change."""
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return origin not in self._policy.origins
        if origin is None or origin in self._policy.origins:
            return False
        return urlsplit(origin).netloc != request.headers.get("host")

    async def _run(self, scope: Scope, body: _Body, answer: _Answer) -> None:
        """A handler in a thread cannot be stopped: its caller is answered, and it ends by itself."""
        task = asyncio.ensure_future(self._app(scope, body, answer))
        try:
            done, _ = await asyncio.wait({task}, timeout=self._bounds.request_seconds)
            if not done:
                answer.caller.refused = "time"
                await answer.refuse(
                    CatalogueError(Refusal.UNAVAILABLE, "The answer takes too long.", "Try again later.")
                )
            await task
        finally:
            task.cancel()

    async def note(self, request: Request, caller: Caller, status: int) -> None:
        """Counts a refusal, and completes the audit log."""
        if status == Refusal.UNAUTHENTICATED.value and not caller.refused:
            caller.refused = "login"
        if caller.refused:
            self._count_refusal(caller.refused)
        if caller.audit_id is not None:
            result = Result.REFUSED if caller.refused else Result.DONE if status < 400 else Result.FAILED
            await self._write(lambda: self._audit.finish(caller.audit_id or 0, result, status, caller.refused))
        elif caller.refused and caller.refused != "rate" and not self._recorded.wait(_ALL):
            event = AuditEvent(
                actor=caller.actor.name if caller.actor else ANONYMOUS,
                address=caller.address,
                action=action_of(request),
                about=request.scope["path"],
                namespace=caller.namespace,
                result=Result.REFUSED,
                reason=caller.reason or caller.refused,
                status=status,
            )
            await self._write(lambda: self._audit.record(event))

    async def _write(self, write: Callable[[], object]) -> None:
        """An error is logged: the request is done already, and its STARTED record is there."""
        try:
            await to_thread.run_sync(write)
        except SQLAlchemyError as error:
            structlog.get_logger(__name__).error("audit log failed", reason=type(error).__name__)


class _Body:
    """Receives a body in bounds."""

    def __init__(self, receive: Receive, bounds: Bounds, answer: _Answer) -> None:
        self._receive = receive
        self._bounds = bounds
        self._answer = answer
        self._size = 0
        self._is_complete = False
        self._deadline = perf_counter() + bounds.body_seconds

    async def __call__(self) -> Message:
        if self._is_complete:
            return await self._receive()  # waits for the end of the connection
        try:
            async with asyncio.timeout(max(self._deadline - perf_counter(), 0)):
                message = await self._receive()
        except TimeoutError:
            raise self._refused(_too_slow(self._answer.caller)) from None
        if message["type"] == "http.disconnect":
            raise self._refused(_gone(self._answer.caller))
        self._is_complete = not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        if self._size > self._bounds.body_bytes:
            raise self._refused(_too_large(self._answer.caller, self._bounds))
        return message

    def _refused(self, error: CatalogueError) -> CatalogueError:
        """The answer, too, knows it: a framework may make an error of its own of what is raised here."""
        self._answer.refusal = error
        return error


class _Answer:
    """Sends one answer: the application's, or the gate's refusal if that comes first."""

    def __init__(self, gate: Gate, request: Request, caller: Caller, send: Send) -> None:
        self.caller = caller
        self.refusal: CatalogueError | None = None
        self._gate = gate
        self._request = request
        self._send = send
        self._is_refused = False
        self._has_begun = False

    async def __call__(self, message: Message) -> None:
        if self._is_refused:
            return
        if message["type"] == "http.response.start" and self.refusal is not None:
            error, self.refusal = self.refusal, None
            await self.refuse(error)
            return
        if message["type"] == "http.response.start":
            self._has_begun = True
            await self._gate.note(self._request, self.caller, message["status"])
            headers = [*message.get("headers", []), *answer_headers(message, self._request, self.caller)]
            message = {**message, "headers": headers}
        await self._send(message)

    async def refuse(self, error: CatalogueError) -> None:
        """Answer with the error. Do nothing if an answer has begun."""
        if self._has_begun:
            return
        for message in refusal_messages(error):
            await self(message)
        self._is_refused = True


def _gone(caller: Caller) -> CatalogueError:
    """Return the error for a client that has gone. It does not get the answer; the metrics and the audit
    log count it.
    """
    caller.refused = "disconnect"
    return CatalogueError(Refusal.TIMEOUT, "The client closed the connection within its request.", "Send it again.")


def _too_slow(caller: Caller) -> CatalogueError:
    caller.refused = "slow-body"
    return CatalogueError(
        Refusal.TIMEOUT, "The request's body came too slowly.", "Send it within schematizer.body_seconds."
    )


def _too_large(caller: Caller, bounds: Bounds) -> CatalogueError:
    caller.refused = "body-size"
    return CatalogueError(
        Refusal.TOO_LARGE,
        f"The request's body is larger than {bounds.body_bytes} bytes.",
        "Send less, or raise schematizer.max_body_bytes.",
    )

"""What the registry counts for Prometheus: requests by route and status, their time, and what its database holds."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import structlog
from prometheus_client import Counter, Histogram
from sqlalchemy.exc import SQLAlchemyError

from cdc_program.metrics import Collected, gauges
from schematizer.model.database import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from schematizer.confluent.store import Store

_PREFIX = "cdc_schematizer"
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0)  # seconds
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
OTHER = "other"
"""The label of a method that the API does not have, and of a path that is none of its routes: clients choose both."""


class RegistryMetrics:
    """Counters that requests fill, and gauges that are read from the store at each scrape."""

    def __init__(self, registry: CollectorRegistry, store: Store) -> None:
        self._store = store
        self._requests = Counter(
            f"{_PREFIX}_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            f"{_PREFIX}_request_seconds",
            "Time to answer a request.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._database_errors = Counter(
            f"{_PREFIX}_database_errors", "Requests that failed because of the database.", registry=registry
        )
        self._refusals = Counter(
            f"{_PREFIX}_refused_requests",
            "Requests refused because of who sent them, how many, how large or how slow they were.",
            ("reason",),
            registry=registry,
        )
        registry.register(Collected(self._stored))

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def count_database_error(self) -> None:
        self._database_errors.inc()

    def count_refusal(self, reason: str) -> None:
        """`reason`: one of a dozen words; clients do not choose it."""
        self._refusals.labels(reason).inc()

    def as_json(self) -> dict[str, Any]:
        """The numbers of the store, or `problem` alone where the database fails."""
        try:
            counts = self._store.counts()
        except SQLAlchemyError as error:
            return {"problem": reason_of(error)}
        return counts._asdict()

    def _stored(self) -> Iterator[Metric]:
        """Without the numbers where the database fails."""
        try:
            counts = self._store.counts()
        except SQLAlchemyError as error:
            structlog.get_logger(__name__).error("database failed", path="/metrics", reason=reason_of(error))
            counts = None
        yield from gauges(
            _PREFIX,
            (
                ("database_usable", "1 where the database answered this scrape.", float(counts is not None)),
                ("subjects", "Subjects with a version that is not deleted.", counts and counts.subjects),
                ("versions", "Versions that are not deleted.", counts and counts.versions),
                ("schemas", "Schemas, each of which has an id for ever.", counts and counts.schemas),
            ),
        )


def _route(scope: Scope) -> str:
    """The path of the route with its parameters' names; of a mounted application, after the path of the mount."""
    path = getattr(scope.get("route"), "path", None)
    return OTHER if path is None else f"{scope.get('root_path', '')}{path}"


class MeasuredRequests:
    """An ASGI application that counts what `app` answers."""

    def __init__(self, app: ASGIApp, metrics: RegistryMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else OTHER
            route = _route(scope)
            self._metrics.count_request(method, route, status, perf_counter() - started)

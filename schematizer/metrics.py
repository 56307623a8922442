"""The registry's metrics for Prometheus: requests by route and status, their time, and what its database holds."""

from __future__ import annotations

from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import structlog
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy.exc import SQLAlchemyError

from cdc_common.program.metrics import Collected, gauges
from schematizer.model.database import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from schematizer.catalogue.census import Census, Counted
    from schematizer.confluent.store import Store

_PREFIX = "cdc_schematizer"
_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0)  # seconds
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
OTHER = "other"
"""The label of a method that the API does not have, and of a path that is none of its routes: clients choose both."""

_CENSUS_SECONDS = 60.0
"""How old the numbers of the namespaces may be: to count them reads whole tables."""
_CENSUS = {
    "topics": ("Number of topics in the namespace.", "status"),
    "topic_schemas": ("Number of schemas in topics of the namespace.", "status"),
    "unused_topics": ("Number of topics without use for 90 days.", None),
    "unused_schemas": ("Number of schemas without use for 90 days, in topics that are used.", None),
    "producers": ("Registered producers. Late: not registered again for twice the expected time.", "state"),
    "consumers": ("Registered consumers. Late: not registered again for twice the expected time.", "state"),
}
"""Help, and the label of Counted.state."""


class RegistryMetrics:
    """Counters that requests fill, and gauges that are read from the database at a scrape."""

    def __init__(self, registry: CollectorRegistry, store: Store, census: Census) -> None:
        self._store = store
        self._census = census
        self._counted: list[Metric] = []
        self._counted_at: float | None = None
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
            "Requests refused for their sender, rate, size or slowness, by reason.",
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
        """Yield the metrics of what is stored, without the numbers if the database fails."""
        try:
            counts = self._store.counts()
            of_namespaces = self._of_namespaces()
        except SQLAlchemyError as error:
            structlog.get_logger(__name__).error("database failed", path="/metrics", reason=reason_of(error))
            counts, of_namespaces = None, []
        yield from of_namespaces
        yield from gauges(
            _PREFIX,
            (
                ("database_usable", "1 if the database answered during this scrape.", float(counts is not None)),
                ("subjects", "Number of subjects with a version that is not deleted.", counts and counts.subjects),
                ("versions", "Number of versions that are not deleted.", counts and counts.versions),
                ("schemas", "Number of schemas. Each keeps its id permanently.", counts and counts.schemas),
            ),
        )

    def _of_namespaces(self) -> list[Metric]:
        """Return the metrics of all namespaces, at most _CENSUS_SECONDS old."""
        if self._counted_at is None or monotonic() - self._counted_at > _CENSUS_SECONDS:
            self._counted, self._counted_at = _as_gauges(self._census.take()), monotonic()
        return self._counted


def _as_gauges(census: Iterable[Counted]) -> list[Metric]:
    made: dict[str, GaugeMetricFamily] = {}
    for what, (text, label) in _CENSUS.items():
        labels = ["namespace"] if label is None else ["namespace", label]
        made[what] = GaugeMetricFamily(f"{_PREFIX}_{what}", text, labels=labels)
    for what, namespace, state, number in census:
        made[what].add_metric([namespace, state] if state else [namespace], number)
    return list(made.values())


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
        started, status, is_counted = perf_counter(), 500, False

        def count() -> None:
            nonlocal is_counted
            if not is_counted:
                is_counted = True
                method = scope["method"] if scope["method"] in _METHODS else OTHER
                self._metrics.count_request(method, _route(scope), status, perf_counter() - started)

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif not message.get("more_body", False):
                count()  # first: whoever has the answer finds it counted
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            count()

"""Clients of a registry, each a process with one connection: what they ask, and how long each answer takes."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import random
import socket
import time
from contextlib import suppress
from threading import BrokenBarrierError
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import click
import psutil

from dev.bench.registry_rows import schema, subject, topic
from tests.support.schematizer.registry_process import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

START_SECONDS = 300  # clients import much, on a machine that may be busy
WARM_UP = 20  # requests


class Request(NamedTuple):
    """A request over HTTP."""

    # The HTTP method.
    method: str
    # The path, after the service's URL.
    path: str
    # The JSON body; None for a request without one.
    body: str | None


class Service(NamedTuple):
    """A running registry."""

    # The URL at which Confluent's API begins.
    url: str
    # The id of its process.
    process_id: int
    # The number of schemas that it has.
    schemas: int


class Load(NamedTuple):
    """Clients that ask at the same time."""

    # The number of clients.
    clients: int
    # The duration, in s.
    seconds: float


class Measured(NamedTuple):
    """The figures of one load."""

    # The time of each request, in s, in rising order.
    seconds: list[float]
    # The number of requests per second of all clients.
    rate: float
    # The CPU seconds of the service for each request.
    cpu: float
    # The number of cores that the service used.
    cores: float


def read(number: int, _count: int) -> Request:
    return Request("GET", f"/schemas/ids/{number + 1}", None)


def register(number: int, _count: int) -> Request:
    return Request("POST", f"/subjects/{subject(number)}/versions", json.dumps({"schema": schema(number)}))


def register_new(number: int, count: int) -> Request:
    return register(count + random.randrange(10**9) + number, count)  # noqa: S311 - nothing secret


def latest_of_topic(number: int, _count: int) -> Request:
    return Request("GET", f"/api/v1/topics/{topic(number)}/schemas/latest", None)


KINDS: dict[str, Callable[[int, int], Request]] = {
    "GET by id": read,
    "POST of a known schema": register,
    "GET latest of a topic": latest_of_topic,
    "POST of a new schema": register_new,
}
OF_CONFLUENT = ("GET by id", "POST of a known schema", "POST of a new schema")
"""Kinds that every registry with Confluent's API has."""


ANSWER_SECONDS = 5.0
"""The time after which a request counts as unanswered. Apicurio leaves about one POST in 10,000 without an answer."""


class Connection:
    """A connection to one service."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._prefix = where.path
        self._connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=ANSWER_SECONDS)

    def ask(self, wanted: Request) -> bytes:
        """click.ClickException for any status but 200."""
        if self._connection.sock is None:
            self._connection.connect()
        # One TCP segment for each request: Apicurio often waits for the end of a body that comes in a second one.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self._connection.request(wanted.method, self._prefix + wanted.path, wanted.body, {"Content-Type": CONTENT_TYPE})
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        response = self._connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise click.ClickException(f"{wanted.method} {wanted.path}: {response.status} {content[:200]!r}")
        return content

    def close(self) -> None:
        """The next request opens it again."""
        self._connection.close()


def measure(service: Service, kind: str, load: Load) -> Measured:
    """All clients are connected and warm before the clock starts."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(load.clients + 1), context.Queue()
    seeds = range(load.clients)
    arguments = (service, kind, load.seconds, barrier, results)
    workers = [context.Process(target=_run_client, args=(seed, arguments), daemon=True) for seed in seeds]
    for worker in workers:
        worker.start()
    process = psutil.Process(service.process_id)
    with suppress(BrokenBarrierError):
        barrier.wait(START_SECONDS)
    before, started = sum(process.cpu_times()[:2]), time.monotonic()
    found = [results.get(timeout=load.seconds + START_SECONDS) for _ in workers]
    cpu, elapsed = sum(process.cpu_times()[:2]) - before, time.monotonic() - started
    for worker in workers:
        worker.join()
    failed = [reading for reading in found if isinstance(reading, str)]
    if failed:
        raise click.ClickException(f"{kind}: {failed[0]}")
    times = sorted(seconds for every in found for seconds in every)
    return Measured(times, len(times) / elapsed, cpu / len(times), cpu / elapsed)


Shared = tuple[Service, str, float, "Barrier", "Queue[list[float] | str]"]
"""The arguments that all clients share: the service, the kind of requests, seconds, when to begin, where times go."""


def _run_client(seed: int, shared: Shared) -> None:
    """The times of one client, or what went wrong."""
    *_, barrier, results = shared
    try:
        results.put(_times(seed, shared))
    except BrokenBarrierError:
        results.put([])  # another client says why
    except (OSError, click.ClickException) as error:
        results.put(str(error) or repr(error))
        barrier.abort()


def _times(seed: int, shared: Shared) -> list[float]:
    """Sends requests one after the other. Returns the seconds that each took."""
    service, kind, seconds, barrier, _ = shared
    chosen, make, connection = random.Random(seed), KINDS[kind], Connection(service.url)  # noqa: S311 - reproducible
    times: list[float] = []
    for _ in range(WARM_UP):
        connection.ask(make(chosen.randrange(service.schemas), service.schemas))
    connection.close()  # a service closes one that is idle until all clients are there
    barrier.wait(START_SECONDS)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wanted = make(chosen.randrange(service.schemas), service.schemas)
        started = time.perf_counter()
        try:
            connection.ask(wanted)
        except TimeoutError:
            connection.close()  # its time shows it
        times.append(time.perf_counter() - started)
    return times

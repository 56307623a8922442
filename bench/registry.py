"""The registry with 10^5 schemas: requests a second, their times and the service's CPU, for reads by id and for
registrations of what is there already, which are what producers and consumers ask all day; and for new schemas.

No package registry carries another registry that runs without a JVM application server, so the figures are absolute.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import click
import psutil

from bench.registry_rows import PER_TOPIC, fill, schema, subject, topic
from schematizer.model.database import opened
from tests.support.schematizer.registry_process import CONTENT_TYPE, Registry

if TYPE_CHECKING:
    from collections.abc import Callable


class Request(NamedTuple):
    method: str
    path: str
    body: str | None


class Measured(NamedTuple):
    """`seconds`: the time of each request; `cpu`: of the service, in seconds."""

    seconds: list[float]
    elapsed: float
    cpu: float


def read(number: int, _count: int) -> Request:
    return Request("GET", f"/schemas/ids/{number + 1}", None)


def register_again(number: int, _count: int) -> Request:
    return Request("POST", f"/subjects/{subject(number)}/versions", json.dumps({"schema": schema(number)}))


def register_new(number: int, count: int) -> Request:
    new = count + random.randrange(10**9) + number  # noqa: S311 - nothing secret
    return Request("POST", f"/subjects/{subject(new)}/versions", json.dumps({"schema": schema(new)}))


def latest_of_topic(number: int, _count: int) -> Request:
    return Request("GET", f"/api/v1/topics/{topic(number)}/schemas/latest", None)


KINDS: dict[str, Callable[[int, int], Request]] = {
    "GET by id": read,
    "POST of a known schema": register_again,
    "GET latest of a topic": latest_of_topic,
    "POST of a new schema": register_new,
}


def client(url: str, kind: str, count: int, seconds: float, seed: int) -> list[float]:
    """The times of one client's requests, one after the other on one connection."""
    chosen, make = random.Random(seed), KINDS[kind]  # noqa: S311 - reproducible on purpose
    where = urlsplit(url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wanted = make(chosen.randrange(count), count)
        started = time.perf_counter()
        connection.request(wanted.method, wanted.path, wanted.body, {"Content-Type": CONTENT_TYPE})
        response = connection.getresponse()
        content = response.read()
        times.append(time.perf_counter() - started)
        if response.status != 200:
            raise click.ClickException(f"{wanted.method} {wanted.path}: {response.status} {content[:200]!r}")
    connection.close()
    return times


def measure(registry: Registry, kind: str, count: int, clients: int, seconds: float) -> Measured:
    assert registry.process is not None
    process = psutil.Process(registry.process.pid)
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        pool.map(os.getpgid, [0] * clients)  # all are there before the clock starts
        before, started = sum(process.cpu_times()[:2]), time.monotonic()
        arguments = [(registry.url, kind, count, seconds, seed) for seed in range(clients)]
        times = [each for every in pool.starmap(client, arguments) for each in every]
        elapsed = time.monotonic() - started
    return Measured(sorted(times), elapsed, sum(process.cpu_times()[:2]) - before)


@click.command()
@click.option("--schemas", default=100_000, show_default=True, help="Schemas in the registry, ten in a topic.")
@click.option("--clients", default=4, show_default=True, help="Clients at once, each with one connection.")
@click.option("--seconds", default=10.0, show_default=True, help="How long each kind of request is measured.")
@click.option("--database-url", default="", help="An empty database; by default a new SQLite file.")
def main(schemas: int, clients: int, seconds: float, database_url: str) -> None:
    """Prints one line for each kind of request."""
    with tempfile.TemporaryDirectory(prefix="cdc-bench-registry-") as folder:
        file = Path(folder) / "registry.db"
        started = time.monotonic()
        with opened(database_url or f"sqlite:///{file}") as database:
            fill(database, schemas)
        click.echo(f"{schemas} schemas in {schemas // PER_TOPIC} topics, filled in {time.monotonic() - started:.0f} s")
        registry = Registry(file, database_url=database_url).start()
        try:
            for kind in KINDS:
                found = measure(registry, kind, schemas, clients, seconds)
                click.echo(_line(kind, found))
        finally:
            registry.stop()


def _line(kind: str, found: Measured) -> str:
    count = len(found.seconds)
    middle, last = statistics.median(found.seconds), found.seconds[int(count * 0.99)]
    return (
        f"{kind:<24} {count / found.elapsed:8.0f}/s   p50 {middle * 1000:6.1f} ms   p99 {last * 1000:6.1f} ms   "
        f"CPU of the service {found.cpu / count * 1000:6.2f} ms each, {found.cpu / found.elapsed:4.0%} of a core"
    )


if __name__ == "__main__":
    main()

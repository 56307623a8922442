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

from schematizer.avro_schemas.parsing import parse
from schematizer.catalogue.mirror import Mirror
from schematizer.model.database import Database, opened
from schematizer.model.registry_queries import add_version, digest_of, ensure_schema
from tests.support.schematizer.registry_process import CONTENT_TYPE, Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

AT_ONCE = 1000
PER_TOPIC = 10
COLUMNS = 12


class Request(NamedTuple):
    method: str
    path: str
    body: str | None


class Measured(NamedTuple):
    """`seconds`: the time of each request; `cpu`: of the service, in seconds."""

    seconds: list[float]
    elapsed: float
    cpu: float


def schema(number: int) -> str:
    """A row of a dozen columns, one of them the number's own."""
    fields = [{"name": f"column_{each}", "type": ["null", "string"], "default": None} for each in range(COLUMNS - 1)]
    fields.append({"name": f"own_{number}", "type": ["null", "long"], "default": None})
    record = {"type": "record", "name": "Value", "namespace": f"cdc.bench.t{number // PER_TOPIC}", "fields": fields}
    return json.dumps(record)


def subject(number: int) -> str:
    return f"cdc.bench.t{number // PER_TOPIC}-value"


def fill(database: Database, count: int) -> None:
    """As registrations do, but many in one transaction."""
    mirror = Mirror()

    def add(connection: Connection, first: int) -> None:
        for number in range(first, min(first + AT_ONCE, count)):
            text = parse(schema(number)).canonical
            schema_id = ensure_schema(connection, digest_of(text), text)
            add_version(connection, subject(number), schema_id)
            mirror.registered(connection, subject(number), schema_id, text)

    for first in range(0, count, AT_ONCE):
        database.write(lambda connection, first=first: add(connection, first))  # type: ignore[misc] # bound at once


def read(number: int, _count: int) -> Request:
    return Request("GET", f"/schemas/ids/{number + 1}", None)


def register_again(number: int, _count: int) -> Request:
    return Request("POST", f"/subjects/{subject(number)}/versions", json.dumps({"schema": schema(number)}))


def register_new(number: int, count: int) -> Request:
    new = count + random.randrange(10**9) + number  # noqa: S311 - nothing secret
    return Request("POST", f"/subjects/{subject(new)}/versions", json.dumps({"schema": schema(new)}))


def latest_of_topic(number: int, _count: int) -> Request:
    return Request("GET", f"/api/v1/topics/cdc.bench.t{number // PER_TOPIC}/schemas/latest", None)


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

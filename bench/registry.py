"""The registry with 10^5 schemas beside another one: requests a second, their times and the service's CPU, for reads by
id and for registrations of what is there already, which are what producers and consumers ask all day.

The other one is Apicurio Registry, the only one with Confluent's API that a package registry carries; it gets its
schemas over HTTP and keeps them in memory, as it does by default.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.apicurio import Apicurio
from bench.registry_clients import KINDS, OF_CONFLUENT, Load, Measured, Service, measure
from bench.registry_rows import PER_TOPIC, fill
from schematizer.model.database import opened
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.command()
@click.option("--schemas", default=100_000, show_default=True, help="Schemas in the registry, ten in a topic.")
@click.option("--clients", default=4, show_default=True, help="Clients at once, each with one connection.")
@click.option("--seconds", default=10.0, show_default=True, help="How long each kind of request is measured.")
@click.option("--database-url", default="", help="An empty database; by default a new SQLite file.")
@click.option(
    "--peer-seconds", default=120.0, show_default=True, help="How long Apicurio is filled at most; 0: no Apicurio."
)
def main(schemas: int, clients: int, seconds: float, database_url: str, peer_seconds: float) -> None:
    """Prints one line for each kind of request."""
    load = Load(clients, seconds)
    with tempfile.TemporaryDirectory(prefix="cdc-bench-registry-") as folder:
        _measure_ours(Path(folder) / "registry.db", database_url, schemas, load)
    if peer_seconds:
        with Apicurio() as other:
            started = time.monotonic()
            service = other.filled(schemas, clients, peer_seconds)
            click.echo(f"Apicurio Registry: {service.schemas} schemas, filled in {time.monotonic() - started:.0f} s")
            _measure(service, OF_CONFLUENT, load)


def _measure_ours(file: Path, database_url: str, schemas: int, load: Load) -> None:
    started = time.monotonic()
    with opened(database_url or f"sqlite:///{file}") as database:
        fill(database, schemas)
    filled = time.monotonic()
    registry = Registry(file, database_url=database_url).start()
    try:
        assert registry.process is not None
        click.echo(
            f"cassandra-schematizer: {schemas} schemas in {schemas // PER_TOPIC} topics, filled in "
            f"{filled - started:.0f} s, started in {time.monotonic() - filled:.0f} s"
        )
        _measure(Service(registry.url, registry.process.pid, schemas), KINDS, load)
    finally:
        registry.stop()


def _measure(service: Service, kinds: Iterable[str], load: Load) -> None:
    for kind in kinds:
        click.echo(_line(kind, measure(service, kind, load)))


def _line(kind: str, found: Measured) -> str:
    middle, last = statistics.median(found.seconds), found.seconds[int(len(found.seconds) * 0.99)]
    return (
        f"  {kind:<24} {found.rate:8.0f}/s   p50 {middle * 1000:6.1f} ms   p99 {last * 1000:6.1f} ms   "
        f"CPU of the service {found.cpu * 1000:6.2f} ms each, {found.cores:4.0%} of a core"
    )


if __name__ == "__main__":
    main()

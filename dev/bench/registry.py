"""The registry with 10^5 schemas beside another one: requests a second, their times and the service's CPU, for reads by
id and for registrations of what is there already, which are what producers and consumers ask all day; and for new
schemas.

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
import psutil

from dev.bench.apicurio import Apicurio
from dev.bench.registry_clients import ANSWER_SECONDS, KINDS, OF_CONFLUENT, Load, Measured, Service, measure
from dev.bench.registry_rows import PER_TOPIC, fill
from dev.bench.results import Figures, report
from schematizer.model.database import opened
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable

OTHER = "Apicurio: "


@click.command()
@click.option("--schemas", default=100_000, show_default=True, help="Schemas in the registry, ten in a topic.")
@click.option("--clients", default=4, show_default=True, help="Clients at once, each with one connection.")
@click.option("--seconds", default=10.0, show_default=True, help="How long each kind of request is measured.")
@click.option("--database-url", default="", help="An empty database; by default a new SQLite file.")
@click.option(
    "--peer-seconds", default=120.0, show_default=True, help="How long Apicurio is filled at most; 0: no Apicurio."
)
def main(schemas: int, clients: int, seconds: float, database_url: str, peer_seconds: float) -> None:
    """Prints a column for each kind of request."""
    load, waiting = Load(clients, seconds), psutil.getloadavg()[1]
    with tempfile.TemporaryDirectory(prefix="cdc-bench-registry-") as folder:
        rows = _ours(Path(folder) / "registry.db", database_url, schemas, load)
    facts = {"schemas": schemas, "clients": clients, "seconds": seconds, "load_before": round(waiting, 1)}
    if peer_seconds:
        with Apicurio() as other:
            started = time.monotonic()
            service = other.filled(schemas, clients, peer_seconds)
            facts |= {"apicurio_schemas": service.schemas, "apicurio_filled_s": round(time.monotonic() - started)}
            rows |= _measured(service, OF_CONFLUENT, load, OTHER)
    report("registry", f"Registries: {facts}", rows, facts)


def _ours(file: Path, database_url: str, schemas: int, load: Load) -> dict[str, Figures]:
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
        return _measured(Service(registry.url, registry.process.pid, schemas), KINDS, load)
    finally:
        registry.stop()


def _measured(service: Service, kinds: Iterable[str], load: Load, prefix: str = "") -> dict[str, Figures]:
    found = {}
    for kind in kinds:
        found[prefix + kind] = _figures(measure(service, kind, load))
        click.echo(f"{prefix}{kind}: {found[prefix + kind]}")
    return found


def _figures(found: Measured) -> Figures:
    middle, last = statistics.median(found.seconds), found.seconds[int(len(found.seconds) * 0.99)]
    return {
        "requests_per_second": round(found.rate, 1),
        "p50_ms": round(middle * 1000, 2),
        "p99_ms": round(last * 1000, 2),
        "cpu_ms": round(found.cpu * 1000, 3),
        "cores": round(found.cores, 3),
        "not_answered": sum(second >= ANSWER_SECONDS for second in found.seconds),
    }


if __name__ == "__main__":
    main()

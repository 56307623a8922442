"""`make verify WHAT=dashboards`: every panel and every alert, asked of a Prometheus that scrapes the running stack.

Each expression must find something, or is named in QUIET with what it waits for. No alert may fire while all is well,
and each "down" alert must find its program once that is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import click
import promql_parser
from rich.console import Console

from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.programs import environment_of
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.dashboards.prometheus import SCRAPE_SECONDS, Prometheus
from tests.support.deploy.alert_rules import FILE, RULES
from tests.support.deploy.dashboards import PANELS
from tests.support.http_get import get, post

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dev.local_stack.servers.programs import Program

RATE = 50.0
DOWN_SECONDS = 30.0
# Small segments and a short bound: the filler writes within the run.
OPTIONS = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS, commitlog_segment_mib=1)
SETTINGS = {"filler.max_segment_age_seconds": 10.0, "filler.period_seconds": 1.0}
QUIET: Mapping[str, str] = {
    "cdc_publisher_cdc_raw_full_in_seconds": "cdc_raw is not in sight of being full",
    "cdc_materializer_stopped_raw_partitions": "no raw partition is stopped",
    "cdc_materializer_stopped_seconds": "no raw partition is stopped",
    "cdc_materializer_retention_seconds_left": "no message has waited for minutes",
    'cdc_schematizer_requests_total{status=~"5.."}': "the registry has no errors of its own",
}
"""Selectors that may find nothing while all is well, and why."""
NOT_RUN = ("cdc_transformer_", "cassandra-transformer", "cdc_archive_", "cassandra-archive")


class Finding(NamedTuple):
    """The result of one expression, of a panel or an alert."""

    # The panel or the alert.
    place: str
    # The expression that was asked.
    expression: str
    # The number of series that it found.
    series: int
    reason: str = ""  # why it may find nothing
    # The error of Prometheus, or another thing that is wrong; "" if nothing is.
    wrong: str = ""

    @property
    def is_good(self) -> bool:
        return not self.wrong and bool(self.series or self.reason)


def panel_findings(prometheus: Prometheus) -> Iterator[Finding]:
    for dashboard, panels in PANELS.items():
        for panel in panels:
            for target in panel["targets"]:
                expression = target["expr"]
                series = len(prometheus.values(expression))
                yield Finding(f"{dashboard}: {panel['title']}", expression, series, reason_of(expression))


def alert_findings(prometheus: Prometheus) -> Iterator[Finding]:
    """Each selector of an alert finds something; the alert itself finds nothing, and Prometheus has no complaint."""
    known = prometheus.rules()
    for name, rule in RULES.items():
        for selector in selectors(rule["expr"]):
            yield Finding(f"alert {name}", selector, len(prometheus.values(selector)), reason_of(selector))
        found = known[name]
        wrong = "" if found["health"] == "ok" else f"{found['health']}: {found.get('lastError', '')}"
        if prometheus.values(rule["expr"]):
            wrong = wrong or f"it finds something while all is well ({found['state']})"
        yield Finding(f"alert {name}", rule["expr"], 0, "all is well", wrong)


def reason_of(expression: str) -> str:
    found = selectors(expression)
    if any(word in name for name in found for word in NOT_RUN):
        return "the stack runs no transformers and no archive"
    return next((QUIET[name] for name in found if name in QUIET), "")


def selectors(expression: str) -> list[str]:
    """The series that it asks for, as PromQL writes them."""
    found: list[str] = []

    def note(node: promql_parser.Expr) -> bool:
        match node:
            case promql_parser.VectorSelector():
                found.append(node.prettify())
            case promql_parser.MatrixSelector():
                found.append(node.vector_selector.prettify())
        return True

    promql_parser.walk(promql_parser.parse(expression), note)
    return list(dict.fromkeys(found))


def ports(stack: Stack) -> dict[str, list[int]]:
    """The operations ports of the programs by job."""
    return {job: [operations_port(program) for program in programs] for job, programs in by_job(stack).items()}


def by_job(stack: Stack) -> dict[str, list[Program]]:
    return {
        "cassandra-publisher": stack.publishers,
        "cassandra-filler": stack.fillers,
        "cassandra-materializer": [stack.materializer],
        "cassandra-schematizer": [stack.schematizer],
    }


def operations_port(program: Program) -> int:
    [port] = [value for name, value in program.settings.items() if name.endswith(".operations_port")]
    return int(str(port))


def use_registry(port: int, stop: threading.Event) -> None:
    """Requests of each kind, twice a second."""
    while not stop.wait(0.5):
        with suppress(OSError):  # the load of a program that is killed at the end
            get(port, "/subjects")
            get(port, "/subjects/nobody/versions")
            post(port, "/subjects/nobody", '{"schema": "\\"string\\""}')


def take_snapshot(publisher: Program) -> None:
    """Takes a snapshot of one table while its changes flow."""
    command = [*publisher.command()[:-1], "snapshot", f"{shop.KEYSPACE}.{next(iter(shop.MARKED))}", "--detach"]
    subprocess.run(command, env={**os.environ, **environment_of(publisher.settings)}, cwd=project_root(), check=True)


def down_findings(stack: Stack, prometheus: Prometheus) -> Iterator[Finding]:
    """Each program is killed; its alert then finds it."""
    downs = {
        rule["expr"].partition('"')[2].partition('"')[0]: name for name, rule in RULES.items() if "up{" in rule["expr"]
    }
    for job, programs in by_job(stack).items():
        for program in programs:
            program.kill()
        expression = RULES[downs[job]]["expr"]
        deadline = time.monotonic() + DOWN_SECONDS
        while not (values := prometheus.values(expression)) and time.monotonic() < deadline:
            time.sleep(SCRAPE_SECONDS)
        yield Finding(f"alert {downs[job]}, its program killed", expression, len(values))


def findings(console: Console, seconds: float) -> list[Finding]:
    folder = ServerFolder("prometheus")
    stop = threading.Event()
    with (
        Stack(options=OPTIONS, settings=SETTINGS, report=lambda text: console.print(text, style="dim")) as stack,
        cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client,
    ):
        shop.create(client)
        prometheus = Prometheus(folder.path, ports(stack), FILE)
        prometheus.start()
        registry = int(stack.servers.registry.rpartition(":")[2])
        asking = threading.Thread(target=use_registry, args=(registry, stop), daemon=True)
        asking.start()
        load = Load(client, RATE, seconds)
        load.start()
        take_snapshot(stack.publishers[0])
        load.wait()
        if load.error is not None:
            raise load.error
        stack.check()
        found = [*panel_findings(prometheus), *alert_findings(prometheus), *down_findings(stack, prometheus)]
        stop.set()
        asking.join()
        prometheus.stop()
    folder.close()
    return found


def show(console: Console, found: list[Finding]) -> bool:
    """Print the expressions that found nothing, with the reason. Returns whether all is well."""
    for judgement in found:
        if not judgement.series and not judgement.expression.startswith("up{"):
            verdict = judgement.wrong or judgement.reason or "NOTHING, and no reason is known"
            if judgement.reason != "all is well" or judgement.wrong:
                console.print(f"{judgement.place}: {judgement.expression}: {verdict}", highlight=False, markup=False)
    panels = [judgement for judgement in found if not judgement.place.startswith("alert ")]
    shown = sum(bool(panel.series) for panel in panels)
    alerts = sum(judgement.reason == "all is well" for judgement in found)
    killed = [judgement for judgement in found if judgement.place.endswith("killed")]
    wrong = [judgement for judgement in found if not judgement.is_good]
    console.print(
        f"{len(panels)} expressions of panels, {shown} with data, {len(panels) - shown} without; {alerts} alerts "
        f"evaluated, {sum(bool(judgement.series) for judgement in killed)} of {len(killed)} fire for a killed program; "
        f"{len(wrong)} wrong",
        highlight=False,
    )
    return not wrong


@click.command()
@click.option("--seconds", default=75.0, show_default=True, help="How long the load lasts; rates are of a minute.")
def main(seconds: float) -> None:
    """Exit status 1 if an expression finds nothing without a known reason, or an alert is wrong."""
    console = Console(soft_wrap=True)
    with reported_errors():
        is_well = show(console, findings(console, seconds))
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()

"""`make verify WHAT=spark-page`: what Spark's UI shows of the job while the demo's load runs.

Asserts what an operator looks for in the Streaming tab, in lastProgress and in Spark's Prometheus sink, and stores the
pages as pictures in docs/images by a headless Chromium (Debian's package `chromium`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cdc_common.program.cli import reported_errors
from dev.local_stack.clients import cql
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import SPARK_START_SECONDS, Program, spark_environment
from dev.local_stack.servers.spark_cluster import spark_home
from dev.local_stack.servers.stack import Stack
from dev.verify.browser.chromium import chromium
from materializer.settings import MaterializerSettings
from stream_runtime.query.spark_conf import PROMETHEUS
from tests.support.http_get import get

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dev.local_stack.servers.programs import Setting

MASTER = "local-cluster[2,1,1024]"
IMAGES = project_root() / "docs" / "images"
RATE = 200.0
_QUERY = re.compile(r"/StreamingQuery/statistics/?\?id=[0-9a-f-]+")
_OPTIONS = ("spark.ui.enabled=true", f"spark.driver.host={LOCALHOST}", "spark.metrics.namespace=cassandra_cdc")
_PAGE_SECONDS = 60


class PageJob(Program):
    """The job by spark-submit with Spark's UI, in a session that has a listener already."""

    def __init__(self, folder: Path, settings: Mapping[str, Setting], port: int) -> None:
        environment = {**spark_environment(folder), "SPARK_PAGE_PROGRESS": str(folder / "progress.jsonl")}
        super().__init__(
            "spark-page",
            (str(Path(__file__).with_name("submitted.py")), "run"),
            folder=folder,
            settings=settings,
            environment=environment,
            start_seconds=SPARK_START_SECONDS,
        )
        self.progress_file = folder / "progress.jsonl"
        sink = (f"{option}={value}" for option, value in PROMETHEUS.items())  # of a session that exists already
        self._options = (*_OPTIONS, *sink, f"spark.ui.port={port}")

    def command(self) -> list[str]:
        options = [word for option in self._options for word in ("--conf", option)]
        return [str(spark_home() / "bin" / "spark-submit"), "--master", MASTER, *options, *self.arguments]

    def last_progress(self) -> dict[str, Any]:
        """Spark's progress report about the last micro-batch that folded something."""
        lines = self.progress_file.read_text().splitlines()
        found = [progress for progress in map(json.loads, lines) if progress["numInputRows"]]
        assert found, f"no micro-batch of {len(lines)} has folded anything"
        last: dict[str, Any] = found[-1]
        return last


def take_picture(browser: str, port: int, path: str, picture: Path, height: int) -> None:
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--virtual-time-budget=8000",
                f"--user-data-dir={profile}",
                f"--window-size=1280,{height}",
                f"--screenshot={picture}",
                f"http://{LOCALHOST}:{port}{path}",
            ],
            check=True,
            capture_output=True,
            timeout=_PAGE_SECONDS,
        )


def page(port: int, path: str) -> str:
    status, body = get(port, path)
    assert status == 200, f"{path}: {status} {body[:200]}"
    return body


def check_progress(progress: Mapping[str, Any], group: str) -> None:
    """The query's name, rows, rates and offsets, as for any query."""
    assert progress["name"] == group, progress
    assert progress["numInputRows"] > 0
    assert progress["processedRowsPerSecond"] > 0
    [source] = progress["sources"]
    assert source["endOffset"]["round"] == source["startOffset"]["round"] + 1, source
    assert source["endOffset"]["positions"], source


def check_sink(text: str) -> None:
    """Spark's own sink has the query's figures: rows and latency."""
    names = {line.partition("{")[0] for line in text.splitlines() if line and not line.startswith("#")}
    wanted = ("inputRate_total", "processingRate_total", "latency", "states_rowsTotal")
    missing = [expected for expected in wanted if not any(expected in name for name in names)]
    assert not missing, f"{missing} are not among {sorted(names)[:40]}"


def show(seconds: float) -> None:
    browser = chromium()
    port, operations = free_ports(2)
    with (
        Stack(settings={"publisher.heartbeat_seconds": 2}) as stack,
        cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        stack.materializer.stop()
        shop.create(client)
        settings = {**stack.materializer.settings, "materializer.operations_port": operations}
        job = PageJob(Path(folder), settings, port)
        load = Load(client, RATE, seconds)
        job.start()
        try:
            load.start()
            load.wait()
            if load.error is not None:
                raise load.error
            listed = page(port, "/StreamingQuery/")
            found = _QUERY.search(listed)
            assert found is not None, "the Streaming tab has no query"
            check_progress(progress := job.last_progress(), MaterializerSettings().group_id)
            check_sink(page(port, "/metrics/prometheus/"))
            page(port, "/metrics/executors/prometheus/")
            IMAGES.mkdir(exist_ok=True)
            take_picture(browser, port, "/StreamingQuery/", IMAGES / "spark-streaming.png", 420)
            take_picture(browser, port, found[0], IMAGES / "spark-query.png", 1500)
            (IMAGES / "last-progress.json").write_text(json.dumps(progress, indent=2) + "\n")
            job.check()
        finally:
            job.stop()
    click.echo(f"lastProgress, Spark's sink and the Streaming tab are as they should be; pictures are in {IMAGES}")


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="How long the load lasts.")
def main(seconds: float) -> None:
    """Fails if Spark's pages lack what an operator looks for."""
    started = time.monotonic()
    with reported_errors():
        show(seconds)
    click.echo(f"{time.monotonic() - started:.0f} s")
    sys.exit(0)


if __name__ == "__main__":
    main()

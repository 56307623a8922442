"""Apicurio Registry, another registry with Confluent's API, from Maven Central, as a child process."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from dev.bench.registry_clients import Connection, Request, Service, register
from dev.local_stack.java.jars import install
from dev.local_stack.java.peer_jars import APICURIO
from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.network import LOCALHOST, free_ports

if TYPE_CHECKING:
    from types import TracebackType

JAVA = 21
HEAP = "-Xmx1g"
START_SECONDS = 240


class Apicurio:
    """A context manager."""

    def __enter__(self) -> Self:
        [archive] = install(APICURIO).glob("*.tar.gz")
        self._folder = tempfile.TemporaryDirectory(prefix="cdc-apicurio-")
        with tarfile.open(archive) as packed:
            packed.extractall(self._folder.name, filter="data")
        port, management = free_ports(2)
        command = [str(find_java(JAVA).executable), HEAP, "-jar", str(Path(self._folder.name) / "quarkus-run.jar")]
        listening = {"QUARKUS_HTTP_HOST": LOCALHOST, "QUARKUS_HTTP_PORT": str(port)}
        listening |= {"QUARKUS_MANAGEMENT_HOST": LOCALHOST, "QUARKUS_MANAGEMENT_PORT": str(management)}
        environment = {**os.environ, **listening}
        self._log = (Path(self._folder.name) / "log").open("wb")
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=subprocess.STDOUT)
        self._url = f"http://{LOCALHOST}:{port}/apis/ccompat/v7"
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)
        self._log.close()
        self._folder.cleanup()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                Connection(self._url).ask(Request("GET", "/subjects", None))
            except (OSError, click.ClickException):  # it listens before all of it is there
                log = Path(self._log.name)
                assert self._process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(0.5)
            else:
                return

    def filled(self, count: int, clients: int, seconds: float) -> Service:
        """Register schemas from 0 on, until there are `count` or `seconds` have passed. Return the filled service."""
        end = time.monotonic() + seconds
        with multiprocessing.get_context("spawn").Pool(clients) as pool:
            shares = [(self._url, first, count, clients, end) for first in range(clients)]
            there = pool.starmap(_register, shares, chunksize=1)
        return Service(self._url, self._process.pid, min(there))


def _register(url: str, first: int, count: int, step: int, end: float) -> int:
    """The schemas first, first + step, …; up to which number all of them are there."""
    connection = Connection(url)
    for number in range(first, count, step):
        if time.monotonic() > end:
            return number
        try:
            connection.ask(register(number, count))
        except TimeoutError:
            connection.close()
            connection.ask(register(number, count))
    return count

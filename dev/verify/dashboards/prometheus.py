"""A Prometheus that scrapes programs of this machine: the one on the PATH, or Debian's, unpacked into a folder."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

import yaml

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.lifecycle import Restartable
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SCRAPE_SECONDS = 2
HTTP_SECONDS = 10.0
NAME = "prometheus"


class Prometheus(Restartable[ChildProcess]):
    """Scrapes the ports of each job every two seconds, and evaluates the rules of the file."""

    start_seconds = 60.0
    stop_seconds = 15.0

    def __init__(self, folder: Path, ports: Mapping[str, Iterable[int]], rules: Path) -> None:
        self._folder = folder
        self._config = {
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [f"{LOCALHOST}:{port}" for port in own]}]}
                for job, own in ports.items()
            ],
        }
        self._port = free_ports(1)[0]
        self.name = NAME

    def launch(self) -> ChildProcess:
        config = self._folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(self._config))
        command = [binary(self._folder), f"--config.file={config}", f"--storage.tsdb.path={self._folder / 'metrics'}"]
        command += [f"--web.listen-address={LOCALHOST}:{self._port}"]
        return ChildProcess(NAME, command, log=self._folder / "prometheus.log", cwd=self._folder)

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOCALHOST}:{self._port}/-/ready", timeout=HTTP_SECONDS):
                return True
        except OSError:
            return False

    def values(self, expression: str) -> list[float]:
        """The values of the series that it finds now. A value that is no number shows nothing, and is left out."""
        found = self._ask("query", query=expression)["result"]
        values = [float(series["value"][1]) for series in found]
        return [value for value in values if not math.isnan(value)]

    def rules(self) -> dict[str, dict[str, Any]]:
        """Each alert's rule, with its health and its state."""
        return {rule["name"]: rule for group in self._ask("rules")["groups"] for rule in group["rules"]}

    def _ask(self, path: str, **parameters: str) -> dict[str, Any]:
        url = f"http://{LOCALHOST}:{self._port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=HTTP_SECONDS) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data


def binary(folder: Path) -> str:
    """CdcError STACK_MISSING if there is none, and apt-get brings none."""
    if found := shutil.which(NAME):
        return found
    unpacked = folder / "debian" / "usr" / "bin" / NAME
    try:
        if not unpacked.is_file():
            subprocess.run(["apt-get", "download", NAME], cwd=folder, check=True, capture_output=True)  # noqa: S607
            [package] = folder.glob(f"{NAME}_*.deb")
            subprocess.run(["dpkg", "-x", str(package), str(folder / "debian")], check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as error:
        raise CdcError(
            Code.STACK_MISSING,
            f"There is no {NAME} on the PATH, and apt-get download brings none: {error}.",
            "Put Prometheus's prometheus on the PATH, or run `apt-get update` first.",
        ) from error
    return str(unpacked)

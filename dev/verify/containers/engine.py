"""A Docker engine: the one that answers, or Debian's, started in a folder of its own and stopped afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click
import psutil

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.lifecycle import Restartable
from dev.local_stack.process.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SOCKET = "unix:///var/run/docker.sock"
PACKAGES = {"docker.io": "dockerd", "iptables": "iptables", "mmdebstrap": "mmdebstrap"}
"""Debian's packages, and a command of each."""
COMMAND_SECONDS = 1800.0
PULL_SECONDS = 120.0


class Engine:
    """A context in which `docker` works. `folder`: of an engine that is started here; its images stay in it."""

    def __init__(self, folder: Path, report: Callable[[str], None] = print) -> None:
        self._folder = folder
        self._report = report
        self._daemon: Daemon | None = None
        self.host = os.environ.get("DOCKER_HOST", SOCKET)
        self._client = "docker"

    def __enter__(self) -> Self:
        if shutil.which("docker") is not None and self._answers():
            self._report(f"The Docker engine at {self.host} answers")
            return self
        install_missing(PACKAGES, "No Docker engine answers.")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._daemon = Daemon(self._folder, self)
        # Debian's own client: a newer one without buildx cannot build with Debian's engine.
        self._client = shutil.which("docker", path="/usr/bin") or self._client
        self.host = self._daemon.host
        self._daemon.start()
        self._report(f"Started Debian's Docker engine in {self._folder}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._daemon is not None:
            self._daemon.stop()

    @property
    def is_ours(self) -> bool:
        """Whether it was started here, and ends here."""
        return self._daemon is not None

    @property
    def environment(self) -> Mapping[str, str]:
        """For a command that uses this engine."""
        return {**os.environ, "DOCKER_HOST": self.host, "DOCKER_BUILDKIT": "1"}

    def docker(self, *arguments: str, seconds: float = COMMAND_SECONDS) -> str:
        """Return the output of `docker ARGUMENTS`. CdcError SERVER_FAILED with the end of what it says if it fails."""
        done = self.try_docker(*arguments, seconds=seconds)
        if done.returncode:
            raise CdcError(
                Code.SERVER_FAILED,
                f"docker {' '.join(arguments)} failed: {(done.stderr or done.stdout).strip()[-2000:]}.",
                f"The engine is at DOCKER_HOST={self.host}.",
            )
        return done.stdout.strip()

    def try_docker(self, *arguments: str, seconds: float = COMMAND_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run `docker ARGUMENTS`, whose status may be any."""
        command = [self._client, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=self.environment, timeout=seconds
        )

    def has_image(self, name: str) -> bool:
        """Return whether the image is there, or can be pulled."""
        if self.try_docker("image", "inspect", name).returncode == 0:
            return True
        try:
            return self._daemon is None and self.try_docker("pull", "-q", name, seconds=PULL_SECONDS).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def size(self, image: str) -> int:
        """Return the bytes of an image, with the layers that it shares."""
        return int(self.docker("image", "inspect", "--format", "{{.Size}}", image))

    def _answers(self) -> bool:
        try:
            return self.try_docker("version", "--format", "{{.Server.Version}}", seconds=20).returncode == 0
        except subprocess.TimeoutExpired:
            return False


class Daemon(Restartable[ChildProcess]):
    """Debian's dockerd, with containerd as its child."""

    name = "dockerd"
    start_seconds = 180.0
    stop_seconds = 60.0

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder = folder
        self._engine = engine
        self.host = f"unix://{folder / 'docker.sock'}"

    def launch(self) -> ChildProcess:
        (self._folder / "dockerd.pid").unlink(missing_ok=True)  # of one that was killed
        command = ["dockerd", "--data-root", str(self._folder / "data"), "--exec-root", str(self._folder / "exec")]
        command += ["-H", self.host, "--pidfile", str(self._folder / "dockerd.pid")]
        command += ["--bridge", "none"]  # docker0 would stay; each network that is used is made and removed
        return ChildProcess(self.name, command, log=self._folder / "dockerd.log", cwd=self._folder)

    def is_ready(self) -> bool:
        return self._engine._answers()

    def stop(self, grace_seconds: float | None = None) -> None:
        """As Restartable, and unmount what the daemon leaves mounted in its folder."""
        super().stop(grace_seconds)
        for mount in psutil.disk_partitions(all=True):
            if Path(mount.mountpoint).is_relative_to(self._folder):
                subprocess.run(["umount", "--lazy", mount.mountpoint], check=True)  # noqa: S607


def install_missing(packages: Mapping[str, str], problem: str) -> None:
    """Install those of Debian's packages whose command is not there. CdcError STACK_MISSING with the problem if that is
    not wanted or not possible.
    """
    missing = [package for package, command in packages.items() if shutil.which(command) is None]
    if not missing:
        return
    words = f"apt-get install {' '.join(missing)}"
    wanted = os.environ.get("CI") == "true" or (sys.stdin.isatty() and click.confirm(f"{problem} Run {words}?"))
    if not wanted:
        raise CdcError(Code.STACK_MISSING, problem, f"Start or install one, or run: {words}")
    try:
        subprocess.run(["apt-get", "update", "-qq"], check=True)  # noqa: S607
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as error:
        raise CdcError(Code.STACK_MISSING, f"{words} failed: {error}.", "Install it by hand.") from error

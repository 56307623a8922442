"""One program in a container as an operator should run it: a read-only root, no capabilities, user 999."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.programs import environment_of
from dev.verify.containers.images import image_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting
    from dev.verify.containers.engine import Engine

CONFINED = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")  # noqa: S108 - the container's
READY_SECONDS = 180.0
HEALTHY_SECONDS = 180.0
SHOWN = 3000  # characters of a log


class Container:
    """A container of a target's image. The folders are mounted at their own paths.

    settings: in its environment, or in /etc/cdc.toml where a folder for the file is given. command: the arguments of
    its entry point; the image's own by default. options: more of `docker run`.
    """

    def __init__(
        self,
        engine: Engine,
        target: str,
        settings: Mapping[str, Setting],
        *,
        folders: Sequence[Path] = (),
        network: str = "host",
        file_folder: Path | None = None,
        command: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self.target = target
        self._settings = settings
        self._folders = folders
        self._network = network
        self._file_folder = file_folder
        self._command = command
        self._options = options
        self.id = ""

    def start(self) -> None:
        """Start it, and wait until it logs `ready`. CdcError with its log if it ends."""
        mounts = [f"--volume={folder}:{folder}" for folder in self._folders]
        network = (
            ("--network", self._network, "--network-alias", self.target)
            if self._network != "host"
            else ("--network", "host")
        )
        options = [*CONFINED, *network, *self._given(), *mounts, *self._options]
        self.id = self._engine.docker("run", "--detach", *options, image_of(self.target), *self._command)
        wait_until(self._is_ready, f"{self.target} to log ready", READY_SECONDS)

    def _given(self) -> list[str]:
        """The options that give it its settings."""
        if self._file_folder is None:
            return [f"--env={name}={value}" for name, value in environment_of(self._settings).items()]
        file = self._file_folder / "cdc.toml"
        file.write_text(toml_of(self._settings))
        return [f"--volume={file}:/etc/cdc.toml:ro"]

    def wait_healthy(self) -> None:
        """Wait until Docker's own HEALTHCHECK finds it healthy."""
        template = "{{.State.Health.Status}}"
        wait_until(lambda: self._inspect(template) == "healthy", f"the health check of {self.target}", HEALTHY_SECONDS)

    def log(self) -> str:
        """Return what it has logged; nothing before its start."""
        if not self.id:
            return ""
        done = self._engine.try_docker("logs", self.id)
        return done.stdout + done.stderr

    def lines_without_json(self) -> list[str]:
        """Return the lines of its log that are no JSON objects."""
        return [line for line in self.log().splitlines() if line.strip() and not _is_object(line)]

    def stop(self, grace_seconds: int) -> tuple[float, int]:
        """Stop it as `docker stop` does. Return the seconds that it took, and its exit status: 137 if it was killed."""
        began = time.monotonic()
        self._engine.docker("stop", "--time", str(grace_seconds), self.id)
        return time.monotonic() - began, int(self._inspect("{{.State.ExitCode}}"))

    def remove(self) -> None:
        """Remove it, running or not."""
        if self.id:
            self._engine.try_docker("rm", "--force", "--volumes", self.id)

    def _is_ready(self) -> bool:
        if self._inspect("{{.State.Running}}") != "true":
            raise CdcError(Code.SERVER_FAILED, f"The container of {self.target} has ended.", "See its log.")
        return '"event": "ready"' in self.log()

    def _inspect(self, template: str) -> str:
        return self._engine.docker("inspect", "--format", template, self.id)


def toml_of(settings: Mapping[str, Setting]) -> str:
    """A file of settings: `filler.max_segment_age_seconds` is a key of the table `[filler]`."""
    lines = []
    for name, value in settings.items():
        table, _, key = name.partition(".")
        lines.append(f"{table}.{key} = {json.dumps(os.fspath(value) if isinstance(value, os.PathLike) else value)}")
    return "\n".join(lines) + "\n"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False

"""The commands `topics plan`, `apply` and `drift` as they are run, and a real cluster and registry for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from dev.local_stack.process.paths import project_root
from tests.support.schematizer.topic_repository import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SECONDS = 300


class Ran(NamedTuple):
    """The result of a command."""

    # Its exit status.
    status: int
    # What it printed on standard output.
    output: str
    # What it printed on standard error.
    errors: str

    @property
    def sums(self) -> str:
        """The last line: the sums of the plan."""
        return self.output.splitlines()[-1]


class TopicCommands:
    """The commands, on one repository, with one settings file."""

    def __init__(self, root: Path, settings: Path) -> None:
        self.root = root
        self.settings = settings

    program = (sys.executable, "-m", "schematizer", "topics")

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of `topics …`."""
        return [*self.program, *arguments, "--repository", str(self.root), "--config", str(self.settings)]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, whose output the caller reads."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            cwd=project_root(),
        )

    def run(self, *arguments: str, seconds: float = SECONDS) -> Ran:
        """Run a command to its end. `seconds`: the longest time that it may take."""
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=seconds, check=False, cwd=project_root()
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def plan(self, environment: str, allowed: Iterable[str] = ()) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        flags = [word for flag in allowed for word in ("--allow", flag)]
        done = self.run("plan", environment, "--format", "json", *flags)
        assert done.status == 0, done.errors
        plan: dict[str, Any] = json.loads(done.output)
        return plan


def write_settings(path: Path, tables: Mapping[str, Mapping[str, str]]) -> Path:
    """Write a settings file."""
    lines = []
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def topic_commands(folder: Path, bootstrap: str, registry: str, prefix: str, more: str = "") -> TopicCommands:
    """The commands for a new repository whose topics' names begin with the prefix. more: lines of its catalogue."""
    root = folder / "topics"
    root.mkdir()
    name = CATALOGUE.replace("{environment}.{domain}", f"{prefix}.{{environment}}.{{domain}}")
    (root / "catalogue.toml").write_text(name + more)
    settings = {"kafka": {"bootstrap_servers": bootstrap}, "registry": {"url": registry}}
    return TopicCommands(root, write_settings(folder / "cdc.toml", settings))

"""Runs the commands of an installation, whose output is shown only if they fail, and installs locked packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")  # dev/tools/python_lock.py makes it
SHOWN_LINES = 40


def run_command(command: list[str], *, is_quiet: bool = False, **variables: str) -> None:
    """`variables` are of its environment. SystemExit where it fails; `is_quiet`: then its last lines are shown."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": "", **variables}
    if is_quiet:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        output = "\n".join(done.stdout.splitlines()[-SHOWN_LINES:]) + "\n" if done.returncode else ""
    else:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr, text=True, check=False)
        output = ""
    if done.returncode:
        print_progress(
            f"{output}This command failed with status {done.returncode}; fix the problem above and run make again:\n"
            f"  {' '.join(command)}"
        )
        raise SystemExit(done.returncode)


def output_of(command: list[str]) -> str:
    """Return what it prints; CalledProcessError where it fails."""
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def pip(python: Path, command: str, *arguments: str) -> None:
    run_command([str(python), "-m", "pip", command, "--quiet", *arguments], is_quiet=True)


def install_locked(python: Path, is_wanted: Callable[[str], bool]) -> None:
    """Install the packages of the lock whose names are wanted, each file checked by its hash."""
    with locked_requirements(is_wanted) as file:
        pip(python, "install", "--no-compile", "--no-build-isolation", *LOCKED, file.name)


# What makes pip take the lock as it is: nothing is resolved, and nothing is installed that it does not name.
LOCKED = ("--no-deps", "--require-hashes", "--requirement")


def locked_requirements(is_wanted: Callable[[str], bool]) -> tempfile._TemporaryFileWrapper[str]:
    """A file for pip with those of the lock's requirements whose names are wanted."""
    file = tempfile.NamedTemporaryFile("w", suffix=".txt")  # noqa: SIM115  the caller closes it
    taken = False
    for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines(keepends=True):
        if line[0] not in " #":
            taken = is_wanted(line.partition("==")[0])
        if taken:
            file.write(line)
    file.flush()
    return file


def locked_version(name: str) -> str:
    """The version in the lock of a package that has one."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    [version] = (line.split()[0].partition("==")[2] for line in lines if line.startswith(f"{name}=="))
    return version


def print_progress(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()

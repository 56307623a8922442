"""Older releases of this project, installed beside the checkout.

A release is a wheel, an sdist, or any git ref of this repository, from which a wheel is built. It gets a Python
environment of its own and takes its dependencies from the checkout's, so nothing is downloaded.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import Release
from dev.tools.distribution import OUT

NAME = "cassandra_cdc_materializer"
# Where the numbers of the formats that programs exchange or store are set.
FORMATS = (
    "cdc_common/messages/raw.py",  # where it was before
    "cdc_common/messages/raw.py",
    "materializer/rows/format_version.py",
    "stream_runtime/state/changelog.py",
)
FORMAT_LINE = "^FORMAT_VERSION = "
VERSION_LINE = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
FIX = "Name a git ref, a wheel or an sdist of this project: make verify WHAT=upgrade FROM=REF."
# Prints a JSON object whose keys are the settings that the release knows.
SETTINGS_COMMAND = ("-m", "publisher", "config", "show", "--all", "--json")


def default_source() -> str:
    """The newest wheel in dist/ for this machine; otherwise the last commit that has another format version."""
    wheels = sorted(OUT.glob(f"{NAME}-*{os.uname().machine}.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if wheels:
        return str(wheels[-1])
    changed = _git("log", "-1", "--format=%H", f"-G{FORMAT_LINE}", "--", *FORMATS).decode().strip()
    return f"{changed}^" if changed else "HEAD~1"


def install(source: str, folder: Path) -> Release:
    """The release that `source` names, installed below `folder`. Raises CdcError(CONFIG_INVALID) if it cannot be."""
    wheel = Path(source) if source.endswith(".whl") else _build(source, folder)
    if not wheel.is_file():
        raise CdcError(Code.CONFIG_INVALID, f"There is no file {source}.", FIX)
    environment = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = environment / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    _run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), str(wheel))
    # Its dependencies; a .pth within that folder, as the one of the checkout itself, is not followed.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    known = json.loads(_run(str(python), *SETTINGS_COMMAND, folder=folder))
    return Release(str(python), None, frozenset(known))


def version_of(release: Release) -> str:
    """Return the version that it names, in `source.version` of its change messages too."""
    script = f"from importlib.metadata import version; print(version('{NAME}'))"
    return _run(release.python, "-c", script, folder=release.modules).decode().strip()


def _build(source: str, folder: Path) -> Path:
    """A wheel of an sdist or of a git ref. A ref's version gets the commit: change messages then say who made them."""
    if source.endswith(".tar.gz"):
        tree = source
    else:
        commit = _git("rev-parse", "--verify", "--short=8", f"{source}^{{commit}}").decode().strip()
        tree = str(folder / "source")
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
            archive.extractall(tree, filter="data")
        project = Path(tree, "pyproject.toml")
        project.write_text(VERSION_LINE.sub(rf'version = "\1+g{commit}"', project.read_text(), count=1))
    with tempfile.TemporaryDirectory() as made:
        build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", made, tree)
        _run(sys.executable, *build)
        [wheel] = Path(made).glob("*.whl")
        return wheel.replace(folder / wheel.name)


def _git(*arguments: str) -> bytes:
    return _run("git", "-C", str(project_root()), *arguments)


def _run(*command: str, folder: Path | None = None) -> bytes:
    """Return the command's output. Raises CdcError(CONFIG_INVALID) with its error's end."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
        raise CdcError(Code.CONFIG_INVALID, f"`{' '.join(command[:4])} …` failed: {' '.join(said)}", FIX)
    return done.stdout

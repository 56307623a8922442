"""Makes what is installed on machines without a network: `python -m tools.distribution` (make dist).

Into `dist/`: a wheel whose hot modules are compiled, for this Python and system, and for each program that runs beside
Cassandra or by itself an archive that brings its Python along (PyInstaller). An archive needs a glibc at least as new
as this machine's: make it on the oldest system that is to run it. The materializer runs where Spark does, which has a
Python: it is the wheel, or `cassandra-materializer archive` for the executors.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from local_stack.process.paths import local_folder, project_root

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = project_root()
OUT = ROOT / "dist"
PROGRAMS = {
    "cassandra-publisher": "publisher",
    "cassandra-filler": "filler",
    "cassandra-commitlog": "commitlog",
    "cassandra-schematizer": "schematizer",
}
# Imported by names that no analysis sees: the driver's event loops, the server's protocols, the database's dialects.
SHARED = ("cassandra_storage", "cassandra_files", "cdc_messages", "cdc_program")
HIDDEN = ("cassandra", "uvicorn", "sqlalchemy.dialects")


class Project(NamedTuple):
    """What pyproject.toml says: `entries` has MODULE:FUNCTION by the program's name, `tools` what building needs."""

    name: str
    version: str
    entries: dict[str, str]
    tools: list[str]


def main() -> int:
    project = read_project()
    OUT.mkdir(exist_ok=True)
    python = make_environment(project)
    wheel = make_wheel(python)
    click.echo(wheel.relative_to(ROOT))
    install(python, wheel)
    for program in PROGRAMS:
        click.echo(make_archive(python, program, project, compiled_parts(wheel)).relative_to(ROOT))
    return 0


def read_project() -> Project:
    with (ROOT / "pyproject.toml").open("rb") as file:
        table = tomllib.load(file)["project"]
    tools = table["optional-dependencies"]["distribution"] + table["dependencies"]
    return Project(table["name"], table["version"], table["scripts"], tools)


def make_environment(project: Project) -> Path:
    """Its Python; what builds is installed there, as pyproject.toml's extra says."""
    environment = local_folder() / "distribution"
    python = environment / "bin" / "python"
    if not python.exists():
        run_command(sys.executable, "-m", "venv", str(environment))
    # mypy follows the imports of what it compiles: the libraries must be there.
    run_command(str(python), "-m", "pip", "install", "--quiet", *project.tools)
    return python


def make_wheel(python: Path) -> Path:
    """Compiled in a folder of its own: the tree stays as it is."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CDC_COMPILED": "1", "PATH": f"{python.parent}:{os.environ['PATH']}"}
        build = ("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        run_command(str(python), "-m", *build, str(_source(Path(folder))), environment=environment)
        [made] = Path(folder).glob("*.whl")
        target = OUT / made.name
        target.write_bytes(made.read_bytes())
    return target


def _source(folder: Path) -> Path:
    """The files of the tree that are packages or say how to build them."""
    source = folder / "source"
    source.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607
    for name in filter(None, listed.decode().split("\0")):
        if not name.startswith(("tests/", "docs/", "bench/", "deploy/")) and (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return source


def install(python: Path, wheel: Path) -> None:
    """The wheel with all that the programs need."""
    extras = ",".join(sorted(set(PROGRAMS.values())))
    run_command(str(python), "-m", "pip", "install", "--quiet", f"{wheel}[{extras}]")
    run_command(str(python), "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel))


def compiled_parts(wheel: Path) -> list[str]:
    """The modules beside the packages that hold mypyc's code: the compiled ones import them where no analysis looks."""
    with zipfile.ZipFile(wheel) as packed:
        return [name.partition(".")[0] for name in packed.namelist() if "/" not in name]


def make_archive(python: Path, program: str, project: Project, parts: Sequence[str]) -> Path:
    """`PROGRAM-VERSION-SYSTEM-MACHINE.tar.gz` with one folder, in which `PROGRAM` is to be run."""
    module, function = project.entries[program].split(":")
    name = f"{program}-{project.version}"
    with tempfile.TemporaryDirectory() as folder:
        # For --version: where it asks for the metadata is compiled, and no analysis sees it.
        options = [*_options(program, module.partition(".")[0], Path(folder)), "--copy-metadata", project.name]
        script = Path(folder) / f"{program}.py"
        script.write_text(f"from {module} import {function}\n\n{function}()\n", encoding="ascii")
        run_command(
            str(python),
            "-m",
            "PyInstaller",
            *options,
            *_hidden(parts),
            str(script),
            folder=Path(folder),
        )
        target = OUT / f"{name}-{platform.system().lower()}-{platform.machine()}.tar.gz"
        with tarfile.open(target, "w:gz") as archive:
            archive.add(Path(folder) / "made" / program, arcname=name)
    return target


def _options(program: str, main_package: str, folder: Path) -> list[str]:
    hidden = [option for package in HIDDEN for option in ("--collect-submodules", package)]
    # The packages of ours that are imported within functions, when they are needed.
    own = [option for package in (*SHARED, main_package) for option in ("--collect-submodules", package)]
    work = ["--distpath", str(folder / "made"), "--workpath", str(folder / "work"), "--specpath", str(folder)]
    return ["--onedir", "--noconfirm", "--log-level", "ERROR", "--name", program, *work, *hidden, *own]


def _hidden(modules: Sequence[str]) -> list[str]:
    return [option for module in modules for option in ("--hidden-import", module)]


def run_command(*command: str, environment: dict[str, str] | None = None, folder: Path | None = None) -> None:
    """PYTHONPATH may lead to a tree, whose plain modules would be packed instead of the wheel's compiled ones."""
    kept = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, env=kept, cwd=folder)


if __name__ == "__main__":
    sys.exit(main())

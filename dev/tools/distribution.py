"""Makes what is installed on machines without a compiler: `python -m dev.tools.distribution` (make dist).

Into `dist/`: a wheel with the compiled core for this Python on Linux x86-64 and one on arm64, and for each program that
runs beside Cassandra or by itself an archive for this machine that brings its Python along (PyInstaller). zig compiles
the wheels for each processor's baseline and glibc 2.17, older than what the packages beside them need. An archive needs
a glibc at least as new as this machine's: make it on the oldest system that is to run it. The materializer and the
transformers run where Spark does, which has a Python: they are the wheel, and their command `archive` for executors.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

import click

from cdc_common.errors.reference import PROGRAM_PACKAGES
from cdc_common.settings.tables import TABLES
from dev.local_stack.process.paths import local_folder, project_root

ROOT = project_root()
OUT = ROOT / "dist"
PROGRAMS = {
    "cassandra-publisher": "publisher",
    "cassandra-filler": "filler",
    "cassandra-commitlog": "commitlog",
    "cassandra-schematizer": "schematizer",
}
MACHINES = ("x86_64", "aarch64")
GLIBC = "2.17"  # of 2014, the oldest that manylinux wheels are tried with
# Imported by names that no analysis sees: the driver's event loops, the server's protocols, the databases' dialects.
EXTRAS = (*sorted(set(PROGRAMS.values())), "postgresql")
"""The extras that are packed into the archives. Each program takes what it imports."""
SHARED = ("cassandra_storage", "cdc_common", "cdc_native")
HIDDEN = ("cassandra", "uvicorn", "sqlalchemy.dialects", "alembic", "sqlglot.dialects")
# The settings and the error pages of every program, which what all share imports by name.
BY_NAME = sorted(
    {place.partition(":")[0] for place in TABLES.values()} | {f"{program}.error_pages" for program in PROGRAM_PACKAGES}
)
DRIVERS = {"schematizer": ("psycopg", "psycopg_binary")}
# Modules that are read as files.
FILES = {"schematizer": ("schematizer.model.migrations", "schematizer.watson")}


class Project(NamedTuple):
    """Parts of pyproject.toml."""

    # The name of the distribution.
    name: str
    # The version.
    version: str
    # MODULE:FUNCTION, by the program's name.
    entries: dict[str, str]
    # The requirements of building.
    tools: list[str]


def main() -> int:
    project = read_project()
    OUT.mkdir(exist_ok=True)
    python = make_environment(project)
    wheels = {machine: make_wheel(python, machine) for machine in MACHINES}
    for wheel in wheels.values():
        click.echo(wheel.relative_to(ROOT))
    install(python, wheels[platform.machine()])
    for program in PROGRAMS:
        click.echo(make_archive(python, program, project).relative_to(ROOT))
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
    run_command(str(python), "-m", "pip", "install", "--quiet", *project.tools)
    return python


def make_wheel(python: Path, machine: str) -> Path:
    """Build a wheel for Linux on this kind of machine. It compiles in a temporary folder, so the tree
    does not change.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CDC_BUILD_TARGET": f"{machine}-linux-gnu.{GLIBC}"}
        build = ("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        run_command(str(python), "-m", *build, str(copy_source(Path(folder))), environment=environment)
        [made] = Path(folder).glob("*.whl")
        target = OUT / made.name
        target.write_bytes(made.read_bytes())
    return target


def copy_source(folder: Path) -> Path:
    """A folder in `folder` with the files of the tree that are packages or say how to build them."""
    source = folder / "source"
    source.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607
    for name in filter(None, listed.decode().split("\0")):
        if not name.startswith(("tests/", "docs/", "dev/", "deploy/")) and (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    return source


def install(python: Path, wheel: Path) -> None:
    """The wheel with all that the programs need."""
    run_command(str(python), "-m", "pip", "install", "--quiet", f"{wheel}[{','.join(EXTRAS)}]")
    run_command(str(python), "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel))


def make_archive(python: Path, program: str, project: Project) -> Path:
    """`PROGRAM-VERSION-SYSTEM-MACHINE.tar.gz` with one folder, in which `PROGRAM` is to be run."""
    module, function = project.entries[program].split(":")
    name = f"{program}-{project.version}"
    with tempfile.TemporaryDirectory() as folder:
        # For --version, which asks for the metadata where no analysis sees it.
        options = [*_options(program, module.partition(".")[0], Path(folder)), "--copy-metadata", project.name]
        script = Path(folder) / f"{program}.py"
        script.write_text(f"from {module} import {function}\n\n{function}()\n", encoding="ascii")
        run_command(
            str(python),
            "-m",
            "PyInstaller",
            *options,
            str(script),
            folder=Path(folder),
        )
        target = OUT / f"{name}-{platform.system().lower()}-{platform.machine()}.tar.gz"
        with tarfile.open(target, "w:gz") as archive:
            archive.add(Path(folder) / "made" / program, arcname=name)
    return target


def _options(program: str, main_package: str, folder: Path) -> list[str]:
    hidden = [option for package in HIDDEN for option in ("--collect-submodules", package)]
    hidden += [option for package in DRIVERS.get(main_package, ()) for option in ("--collect-submodules", package)]
    hidden += [option for module in BY_NAME for option in ("--hidden-import", module)]
    # The project's packages that are imported within functions, when they are needed.
    own = [option for package in (*SHARED, main_package) for option in ("--collect-submodules", package)]
    work = ["--distpath", str(folder / "made"), "--workpath", str(folder / "work"), "--specpath", str(folder)]
    own += [option for package in FILES.get(main_package, ()) for option in ("--collect-all", package)]
    return ["--onedir", "--noconfirm", "--log-level", "ERROR", "--name", program, *work, *hidden, *own]


def run_command(*command: str, environment: dict[str, str] | None = None, folder: Path | None = None) -> None:
    """PYTHONPATH may lead to a tree, whose plain modules would be packed instead of the wheel's."""
    kept = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, env=kept, cwd=folder)


if __name__ == "__main__":
    sys.exit(main())

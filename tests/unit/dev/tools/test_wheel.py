"""The wheel holds the programs and libraries, and nothing of a checkout; those of make dist run on older machines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.process.paths import project_root
from dev.tools import distribution
from tests.support.arm64 import arm64_libraries, arm64_python

if TYPE_CHECKING:
    from pathlib import Path

IMPORT_NAMES = {
    "archive",
    "warehouse",
    "cassandra_cdc_testcontainers",
    "cassandra_storage",
    "cdc_common",
    "cdc_native",
    "filler",
    "materializer",
    "publisher",
    "schematizer",
    "stream_runtime",
    "transformer",
    "joinery",
}
SOURCES = (*sorted(IMPORT_NAMES), "dev")
HELP = """
import contextlib, importlib, importlib.metadata, io, json, sys
sys.path.insert(0, sys.argv[1])
[wheel] = importlib.metadata.distributions(name="cassandra-cdc-materializer", path=[sys.argv[1]])
said = {}
for script in wheel.entry_points.select(group="console_scripts"):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        sys.argv = [script.name, "--help"]
        with contextlib.suppress(SystemExit):
            script.load()()
    said[script.name] = [sys.modules[script.module].__file__, output.getvalue()]
print(json.dumps(said))
"""
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


def modules() -> set[str]:
    core = project_root() / "cdc_native"
    return {path.relative_to(core).with_suffix("").as_posix() for path in core.rglob("*.pyx")}


def compiled_modules(wheel: Path) -> dict[str, bytes]:
    """The shared libraries of a wheel's core, by module."""
    with zipfile.ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if name.endswith(".so")]
        return {name.removeprefix("cdc_native/").partition(".")[0]: packed.read(name) for name in names}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The sources of a wheel, and files that must not be in it."""
    root, source = project_root(), tmp_path / "source"
    for name in SOURCES:
        shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for file in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(root / file, source)
    return source


def build(source: Path, target: Path, **variables: str) -> tuple[Path, str]:
    """The wheel that pip builds, and what it says."""
    command = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--wheel-dir", str(target), str(source)]
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    [wheel] = target.glob("*.whl")
    return wheel, done.stdout


def test_the_wheel_adds_these_import_names(source: Path, tmp_path: Path) -> None:
    """The wheel has no core: `make install` has just compiled it, and the wheels of make dist are checked below."""
    wheel, _ = build(source, tmp_path, CDC_BUILD_CORE="0")
    with zipfile.ZipFile(wheel) as packed:
        files = packed.namelist()
    assert {file.split("/")[0] for file in files if ".dist-info/" not in file} == IMPORT_NAMES
    assert "stream_runtime/query/log4j2.properties" in files
    rooms = ("materializer/fold", "materializer/commands/reshard", "stream_runtime/state")
    assert {f"{room}/__init__.py" for room in rooms} <= set(files)
    assert compiled_modules(wheel) == {}
    check_programs_help(wheel, tmp_path / "unpacked")


def check_programs_help(wheel: Path, folder: Path) -> None:
    """Each program of the wheel, and no file of the checkout."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    command = [sys.executable, "-c", HELP, str(folder)]
    said = json.loads(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout)
    scripts = tomllib.loads((project_root() / "pyproject.toml").read_text())["project"]["scripts"]
    assert said.keys() == scripts.keys()
    for name, (file, text) in said.items():
        assert file.startswith(f"{folder}/")
        assert text.startswith(f"Usage: {name} ")


@pytest.mark.exhaustive
def test_where_it_does_not_compile_the_wheel_has_the_python_code(source: Path, tmp_path: Path) -> None:
    for module in (source / "cdc_native").rglob("*.pyx"):
        module.unlink()
    (source / "cdc_native" / "formats" / "vints.pyx").write_text(
        'cdef extern from "is_nowhere.h":\n    int nowhere\nprint(nowhere)\n'
    )
    wheel, said = build(source, tmp_path)
    assert compiled_modules(wheel) == {}
    assert "The native core was not compiled" in said
    assert "CDC-007" in said


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_without_a_c_compiler_one_comes_from_pypi(source: Path, tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    for name in ("sh", "uname"):
        (tmp_path / "path" / name).symlink_to(shutil.which(name) or "")
    wheel, said = build(source, tmp_path, PATH=str(tmp_path / "path"))
    assert set(compiled_modules(wheel)) == modules()
    assert "ziglang cc" in said


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Those of make dist, by machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "OUT", tmp_path_factory.mktemp("dist"))
        python = distribution.make_environment(distribution.read_project())
        return {machine: distribution.make_wheel(python, machine) for machine in distribution.MACHINES}


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_wheels_are_compiled_for_their_machine_and_glibc(wheels: dict[str, Path]) -> None:
    newest = tuple(map(int, distribution.GLIBC.split(".")))
    for machine, wheel in wheels.items():
        assert wheel.name.endswith(f"-manylinux_{distribution.GLIBC.replace('.', '_')}_{machine}.whl")
        libraries = compiled_modules(wheel)
        assert set(libraries) == modules()
        for library in libraries.values():
            assert int.from_bytes(library[18:20], "little") == ELF_MACHINES[machine]
            needed = [tuple(map(int, match.split(b"."))) for match in re.findall(rb"GLIBC_([0-9.]+)", library)]
            assert max(needed, default=newest) <= newest  # a small module needs none


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", distribution.MACHINES)
def test_the_cores_tests_pass_on_each_machine(wheels: dict[str, Path], machine: str, tmp_path: Path) -> None:
    """arm64's under qemu-user, with Debian's Python."""
    python, libraries = ([sys.executable], "") if machine == "x86_64" else (arm64_python(), f":{arm64_libraries()}")
    with zipfile.ZipFile(wheels[machine]) as packed:
        packed.extractall(tmp_path)
    for folder in ("tests", "docs", "dev"):
        shutil.copytree(project_root() / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(project_root() / "pyproject.toml", tmp_path)
    # Without tests/conftest.py, which needs what runs servers; ci: no deadline for an example.
    command = [*python, "-m", "pytest", "-q", "--noconftest", "--hypothesis-profile=ci", "-p", "no:cacheprovider"]
    if machine != "x86_64":  # Debian's Python there has no librdkafka
        command += ["--ignore", "tests/unit/cdc_native/test_shapes.py"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{libraries}"}
    environment.pop("CDC_NATIVE", None)
    done = subprocess.run(
        [*command, "tests/unit/cdc_native"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1700,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "skipped" not in done.stdout.splitlines()[-1]

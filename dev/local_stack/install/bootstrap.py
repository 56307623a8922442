"""Install everything the project needs into its own folder; runs on any Python 3 with its library alone.

`python -m dev.local_stack.install.bootstrap` makes `.local/venv`, installs the packages of the lock (requirements.txt),
then a Java and the servers' jars, and compiles the native core. A stamp that names Python's version and the hashes of
pyproject.toml and of the lock makes the second run a matter of milliseconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from dev.local_stack.install.commands import (
    LOCKED,
    REQUIREMENTS,
    ROOT,
    install_locked,
    locked_requirements,
    locked_version,
    pip,
    print_progress,
    run_command,
)
from dev.local_stack.install.core import build_core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOCAL = ROOT / ".local"
VENV = LOCAL / "venv"
STAMP = VENV / "installed"
WHEELS = LOCAL / "wheels"  # while it installs
BUILD_TOOLS = frozenset({"setuptools", "cython"})
SPARK = "pyspark"  # a source distribution, three quarters of all bytes
ELSEWHERE = frozenset({*BUILD_TOOLS, SPARK, "ziglang"})
PROGRESS_SECONDS = 10.0


def main() -> int:
    python = VENV / "bin" / "python"
    with contextlib.redirect_stdout(sys.stderr):  # standard output is the command's that this goes before
        wanted = _fingerprint()
        if _stamp() != wanted:
            from dev.local_stack.install.preflight import main as look_around  # noqa: PLC0415 - only before installing

            status = look_around()
            if status:
                return status
            _install(python)
            STAMP.write_text(wanted, encoding="ascii")
        build_core(python)
    return 0


def _fingerprint() -> str:
    """Return what the environment depends on: this Python, the folder it is in, and what is asked for and locked."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + REQUIREMENTS.read_bytes()).hexdigest()
    return f"{sys.version_info[0]}.{sys.version_info[1]} {ROOT} {digest}\n"


def _stamp() -> str:
    try:
        return STAMP.read_text(encoding="ascii")
    except OSError:
        return ""


def _install(python: Path) -> None:
    """PySpark is built while the other packages are installed. Its Ivy then brings the jars."""
    started = time.monotonic()
    with ThreadPoolExecutor(1) as pool, _signs_of_life() as steps:
        _step(steps, "a virtual environment", lambda: _make_environment(python))
        _step(steps, "build tools", lambda: install_locked(python, BUILD_TOOLS.__contains__))
        spark = pool.submit(_step, steps, "PySpark (430 MB)", lambda: _build_spark(python))
        _step(steps, "Python packages (170 MB)", lambda: install_locked(python, lambda name: name not in ELSEWHERE))
        spark.result()
        _step(steps, "this project", lambda: _install_built(python))
        command = [str(python), "-m", "dev.local_stack.install.prefetch"]
        _step(steps, "Java and the servers' jars", lambda: run_command(command))
    print_progress(f"Installed in {time.monotonic() - started:.0f} s.")


def _make_environment(python: Path) -> None:
    if _minor_of(python) != f"{sys.version_info[0]}.{sys.version_info[1]}":
        shutil.rmtree(VENV, ignore_errors=True)
        run_command([sys.executable, "-m", "venv", str(VENV)])


def _build_spark(python: Path) -> None:
    """Build an uncompressed wheel, because it is unpacked at once. Do nothing if this version is installed."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    if any(VENV.glob(f"lib/python*/site-packages/{SPARK}-{locked_version(SPARK)}.dist-info")):
        return
    options = ("--no-build-isolation", "--use-pep517", "--config-settings=--build-option=--compression=stored")
    with locked_requirements(SPARK.__eq__) as file:
        pip(python, "wheel", *options, "--wheel-dir", str(WHEELS), *LOCKED, file.name)


def _install_built(python: Path) -> None:
    """PySpark, and the checkout itself without the native core, which build_core compiles."""
    for wheel in WHEELS.glob("*.whl"):
        pip(python, "install", "--no-compile", "--no-deps", "--no-index", str(wheel))
    shutil.rmtree(WHEELS, ignore_errors=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", "."]
    run_command(command, is_quiet=True, CDC_BUILD_CORE="0")


def _step(steps: dict[str, float], name: str, run: Callable[[], None]) -> None:
    """Run it, and say how long it took."""
    steps[name] = time.monotonic()
    run()
    print_progress(f"  {name}: {time.monotonic() - steps.pop(name):.0f} s")


@contextlib.contextmanager
def _signs_of_life() -> Iterator[dict[str, float]]:
    """Steps that run, by name, with their start; a line names them now and then."""
    steps: dict[str, float] = {}
    is_over = threading.Event()

    def show() -> None:
        while not is_over.wait(PROGRESS_SECONDS):
            print_progress(f"  … {', '.join(list(steps))}")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    print_progress("Installing into .local (about 700 MB to download the first time)")
    try:
        yield steps
    finally:
        is_over.set()
        thread.join()


def _minor_of(python: Path) -> str:
    """`3.11` of an environment's Python; empty if no Python there runs."""
    try:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


if __name__ == "__main__":
    sys.exit(main())

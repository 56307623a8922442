"""Install everything the project needs into its own folder; runs on any Python 3 with nothing but its library.

`python -m local_stack.install.bootstrap` makes `.local/venv`, installs the distribution with its `dev` extra there, and
then has the environment's own Python bring the Java runtime and the servers' jars. A stamp that names Python's version
and the hash of pyproject.toml makes the second run a matter of milliseconds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / ".local"
VENV = LOCAL / "venv"
STAMP = VENV / "installed"


def main() -> int:
    wanted = _fingerprint()
    if _stamp() == wanted:
        return 0
    from local_stack.install.preflight import main as look_around  # noqa: PLC0415 - only before something is installed

    with contextlib.redirect_stdout(sys.stderr):  # standard output is the command's that this goes before
        status = look_around()
    if status:
        return status
    _make_environment()
    STAMP.write_text(wanted, encoding="ascii")
    return 0


def _fingerprint() -> str:
    """What the environment depends on: this Python, the folder it is in, and what pyproject.toml asks for."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return f"{sys.version_info[0]}.{sys.version_info[1]} {ROOT} {digest}\n"


def _stamp() -> str:
    try:
        return STAMP.read_text(encoding="ascii")
    except OSError:
        return ""


def _make_environment() -> None:
    python = VENV / "bin" / "python"
    if _minor_of(python) != f"{sys.version_info[0]}.{sys.version_info[1]}":
        shutil.rmtree(VENV, ignore_errors=True)
        print_progress(f"Making {VENV.relative_to(ROOT)} with Python {sys.version.split()[0]}")
        run_command([sys.executable, "-m", "venv", str(VENV)])
    print_progress("Installing the Python packages (about 600 MB the first time, PySpark most of it)")
    run_command([str(python), "-m", "pip", "install", "--quiet", "--upgrade", "pip"])
    run_command([str(python), "-m", "pip", "install", "--editable", ".[dev]"])
    print_progress("Installing the Java runtime and the servers' jars")
    run_command([str(python), "-m", "local_stack.install.prefetch"])


def _minor_of(python: Path) -> str:
    """`3.11` of an environment's Python; empty if there is none that runs."""
    try:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def run_command(command: list[str]) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": ""}
    status = subprocess.run(command, cwd=ROOT, env=environment, stdout=sys.stderr, check=False).returncode
    if status:
        print_progress(f"This command failed with status {status}; fix the problem above and run make again:")
        print_progress("  " + " ".join(command))
        raise SystemExit(status)


def print_progress(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())

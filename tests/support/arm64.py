"""A Python for arm64 that runs here: Debian's, under qemu-user, unpacked into .local without root's rights."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.install.commands import LOCKED, locked_requirements
from dev.local_stack.process.locks import locked
from dev.local_stack.process.paths import local_folder

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = local_folder() / "arm64"
_PYTHON = f"python3.{sys.version_info[1]}"
_PACKAGES = (
    f"{_PYTHON}-minimal",
    f"lib{_PYTHON}-minimal",
    f"lib{_PYTHON}-stdlib",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libssl3",
    "libuuid1",
    "zlib1g",
)
# What tests of the core import, with all that these need.
_LIBRARIES = (
    "annotated-types",
    "attrs",
    "avro",
    "cffi",
    "click",
    "cramjam",
    "cryptography",
    "fastavro",
    "hypothesis",
    "iniconfig",
    "packaging",
    "pluggy",
    "prometheus-client",
    "pycparser",
    "pydantic",
    "pydantic-core",
    "pydantic-settings",
    "pygments",
    "pytest",
    "pytest-timeout",
    "python-dotenv",
    "sortedcontainers",
    "structlog",
    "typing-extensions",
    "typing-inspection",
)


def arm64_python() -> list[str]:
    """The command that starts it; it finds the locked packages that tests of the core import.

    Skips the test where apt-get does not know this minor version of Python for arm64.
    """
    if platform.machine() == "aarch64":
        return [sys.executable]
    complete = _FOLDER / f"complete-{zlib.crc32(repr((_PACKAGES, _LIBRARIES)).encode()):08x}"
    with locked(_FOLDER):
        if not complete.exists():
            shutil.rmtree(_FOLDER, ignore_errors=True)
            _bring()
            complete.touch()
    return [str(_FOLDER / "host/usr/bin/qemu-aarch64-static"), "-L", str(_FOLDER / "root"), str(_python())]


def arm64_libraries() -> Path:
    """The folder for its PYTHONPATH."""
    return _FOLDER / "libraries"


def _python() -> Path:
    return _FOLDER / "root/usr/bin" / _PYTHON


def _bring() -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("qemu-user and an arm64 Python come from Debian's packages, and there is no apt-get")
    for name in ("lists/partial", "cache/archives/partial", "foreign", "native"):
        (_FOLDER / name).mkdir(parents=True)
    # Lists of its own: the machine's apt need not know this architecture.
    options = ["-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64"]
    options += ["-o", f"Dir::State::lists={_FOLDER}/lists", "-o", f"Dir::Cache={_FOLDER}/cache"]
    _run("apt-get", *options, "update")
    known = _run("apt-cache", *options, "pkgnames", _PACKAGES[0]).stdout.split()
    if _PACKAGES[0] not in known:
        pytest.skip(f"this Debian has no {_PACKAGES[0]} for arm64")
    _run("apt-get", *options, "download", *_PACKAGES, folder="foreign")
    if _run("apt-get", "download", "qemu-user-static", folder="native", is_checked=False).returncode:
        _run("apt-get", "update")
        _run("apt-get", "download", "qemu-user-static", folder="native")
    for folder, target in (("foreign", "root"), ("native", "host")):
        for package in (_FOLDER / folder).glob("*.deb"):
            _run("dpkg-deb", "--extract", str(package), target)
    _bring_libraries()


def _bring_libraries() -> None:
    platforms = [f"--platform=manylinux_2_{glibc}_aarch64" for glibc in (17, 28)]
    with locked_requirements(lambda name: name in _LIBRARIES) as file:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *platforms]
        command += ["--platform=manylinux2014_aarch64", "--target", str(arm64_libraries()), *LOCKED, file.name]
        _run(*command)


def _run(*command: str, folder: str = ".", is_checked: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=_FOLDER / folder, check=False, capture_output=True, text=True)
    assert not (is_checked and done.returncode), f"{' '.join(command)}: {done.stderr[-2000:]}"
    return done

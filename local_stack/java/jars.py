"""Resolves Maven coordinates into `.local/jars/<name>` by the Ivy that PySpark ships; Maven is not needed.

A folder appears whole or not at all: Ivy fills one beside it, which is marked complete and renamed. `CDC_IVY_SETTINGS`
names an ivysettings.xml for networks that have a mirror of their own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from cdc_program.errors import CdcError, Code
from local_stack.java.runtime import MARKER, Java, find_java, installed_jre, system_java
from local_stack.process.locks import locked
from local_stack.process.paths import local_folder

Report = Callable[[str], None]

PROGRESS_SECONDS = 5.0  # between two lines of progress where no terminal rewrites one
PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
IVY_JAVA = (17, 11)  # any of these runs Ivy
SHOWN_ERROR_LINES = 12


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars of some coordinates (`group:artifact:version`) and all they need, less the `group:artifact` excluded."""

    name: str
    coordinates: tuple[str, ...]
    excludes: tuple[str, ...] = ()
    download_mb: int = field(default=0, compare=False)  # measured, for the preflight

    @property
    def folder(self) -> Path:
        return local_folder() / "jars" / self.name

    @property
    def identity(self) -> str:
        """What a complete folder says that it holds."""
        return "\n".join((*self.coordinates, *(f"-{exclude}" for exclude in self.excludes))) + "\n"

    def is_complete(self) -> bool:
        marker = self.folder / MARKER
        return marker.exists() and marker.read_text() == self.identity


KAFKA = JarSet(
    "kafka-4.1.0",
    ("org.apache.kafka:kafka_2.13:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"),
    download_mb=45,
)
S3PROXY = JarSet("s3proxy-2.6.0", ("org.gaul:s3proxy:2.6.0",), download_mb=39)
KAFKA_TOOLS = JarSet(  # kafka-consumer-groups and the like
    "kafka-tools-4.1.0",
    ("org.apache.kafka:kafka-tools:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"),
    download_mb=42,
)
ECJ = JarSet("ecj-3.40.0", ("org.eclipse.jdt:ecj:3.40.0",), download_mb=4)  # a Java compiler that is a plain jar


def class_path(jars: JarSet, *folders: Path) -> str:
    """A JVM's class path: the folders, then every jar of the set."""
    return os.pathsep.join([*map(str, folders), str(jars.folder / "*")])


def install(jars: JarSet, report: Report = print) -> Path:
    """The set's folder, complete: resolved and downloaded unless it is there. Raises CdcError(STACK_MISSING)."""
    if jars.is_complete():
        return jars.folder
    with locked(jars.folder):
        if not jars.is_complete():
            _resolve(jars, report)
    return jars.folder


def _resolve(jars: JarSet, report: Report) -> None:
    fresh = jars.folder.with_name(f"{jars.name}.partial")
    cache = local_folder() / "ivy" / jars.name  # stays after a failure: the next try goes on from there
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    cache.mkdir(parents=True, exist_ok=True)
    description = cache / "ivy.xml"
    description.write_text(_ivy_xml(jars))
    report(f"{jars.name}: resolving {', '.join(jars.coordinates)}")
    started = time.monotonic()
    _run_ivy(jars, description, cache, fresh, report)
    (fresh / MARKER).write_text(jars.identity)
    shutil.rmtree(jars.folder, ignore_errors=True)
    fresh.rename(jars.folder)
    shutil.rmtree(cache)
    report(f"{jars.name}: {_amount(jars.folder)} in {time.monotonic() - started:.0f} s")


def _run_ivy(jars: JarSet, description: Path, cache: Path, target: Path, report: Report) -> None:
    java = _any_java(report)
    command = [str(java.executable), *java.trust_options(), f"-Divy.default.ivy.user.dir={cache / 'user'}"]
    command += ["-jar", str(ivy_jar()), "-cache", str(cache), "-ivy", str(description), "-confs", "default"]
    command += ["-retrieve", f"{target}/{PATTERN}"]
    if os.environ.get("CDC_IVY_SETTINGS"):
        command += ["-settings", os.environ["CDC_IVY_SETTINGS"]]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        progress = _Progress(jars, report)
        for line in ivy.stdout:
            lines.append(line.rstrip())
            progress.see(line)
        progress.end()
    if ivy.returncode or not any(target.glob("*.jar")):
        raise CdcError(
            Code.STACK_MISSING,
            f"The jars of {jars.name} could not be brought:\n{_what_failed(lines)}\n",
            "Check the network and run it again (it goes on where it stopped); with a mirror of your own, name an "
            "ivysettings.xml in CDC_IVY_SETTINGS.",
        )


def ivy_jar() -> Path:
    """The Ivy among PySpark's jars."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec and spec.submodule_search_locations) or []:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise CdcError(
        Code.STACK_MISSING,
        "PySpark, whose Ivy resolves the servers' jars, is not installed.",
        "Run: pip install 'cassandra-cdc-materializer[dev]'",
    )


def _any_java(report: Report) -> Java:
    for major in IVY_JAVA:
        found = installed_jre(major) or system_java(major)[0]
        if found:
            return found
    return find_java(IVY_JAVA[0], report)


def _ivy_xml(jars: JarSet) -> str:
    return "\n".join(
        [
            '<ivy-module version="2.0">',
            '  <info organisation="local" module="stack"/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *(f"    <dependency {_attributes(one)} conf='default->default'/>" for one in jars.coordinates),
            *(f"    <exclude {_attributes(one)}/>" for one in jars.excludes),
            "  </dependencies>",
            "</ivy-module>",
        ]
    )


def _attributes(coordinate: str) -> str:
    parts = coordinate.split(":")
    names = ("org", "name", "rev") if len(parts) == len(("org", "name", "rev")) else ("org", "module")
    return " ".join(f"{name}={quoteattr(part)}" for name, part in zip(names, parts, strict=True))


def _what_failed(lines: Iterable[str]) -> str:
    """The lines in which Ivy says what went wrong, else its last ones."""
    kept = [line for line in lines if line.strip() and "====" not in line]
    told = [line for line in kept if re.search(r"not found|error|exception|FAILED", line, re.IGNORECASE)]
    return "\n".join((told or kept)[-SHOWN_ERROR_LINES:])


def _amount(folder: Path) -> str:
    sizes = [jar.stat().st_size for jar in folder.glob("*.jar")]
    return f"{len(sizes)} jars, {sum(sizes) / 1e6:.0f} MB"


class _Progress:
    """Counts Ivy's downloads: one line that is rewritten on a terminal, else a line now and then."""

    def __init__(self, jars: JarSet, report: Report) -> None:
        self._name = jars.name
        self._report = report
        self._rewrites = report is print and sys.stdout.isatty()
        self._count = 0
        self._last = time.monotonic()

    def see(self, line: str) -> None:
        if "[SUCCESSFUL ]" not in line:
            return
        self._count += 1
        text = f"{self._name}: {self._count} jars downloaded"
        if self._rewrites:
            sys.stdout.write(f"\r{text}")
            sys.stdout.flush()
        elif time.monotonic() - self._last >= PROGRESS_SECONDS:
            self._last = time.monotonic()
            self._report(text)

    def end(self) -> None:
        if self._rewrites and self._count:
            sys.stdout.write("\n")

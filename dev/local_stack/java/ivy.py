"""Runs the Ivy that PySpark ships: it resolves Maven coordinates and downloads jars; Maven is not needed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.runtime import Java, find_java, installed_jre, system_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

JAVA = (17, 11)  # any of these runs it
PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
# Of files that are named one by one no descriptions are needed. Ivy knows where Maven Central is.
SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
SHOWN_ERROR_LINES = 12


class Ivy:
    """`report` gets a line for each Java that is passed over or installed."""

    def __init__(self, report: Callable[[str], None] = print) -> None:
        self._report = report

    def retrieve(self, coordinates: Iterable[str], folder: Path, count: Callable[[], None]) -> str:
        """Download these jars, and nothing that they need; `count` is called for each. What failed, or nothing."""
        with tempfile.TemporaryDirectory(prefix="ivy-") as scratch:
            settings = Path(scratch) / "ivysettings.xml"
            settings.write_text(SETTINGS)
            return self._run(Path(scratch), jars_xml(coordinates), f"{folder}/{PATTERN}", count, settings)

    def resolve(self, coordinates: Sequence[str], excludes: Sequence[str], pattern: str) -> str:
        """Download these jars and all that they need, less the `group:artifact` excluded, to files of Ivy's pattern."""
        with tempfile.TemporaryDirectory(prefix="ivy-") as scratch:
            return self._run(Path(scratch), resolution_xml(coordinates, excludes), pattern, lambda: None, None)

    def _run(
        self, scratch: Path, description: str, pattern: str, count: Callable[[], None], settings: Path | None
    ) -> str:
        """The lines in which Ivy says what failed, or nothing."""
        file = scratch / "ivy.xml"
        file.write_text(description)
        settings = Path(os.environ["CDC_IVY_SETTINGS"]) if os.environ.get("CDC_IVY_SETTINGS") else settings
        java = self._java()
        command = [str(java.executable), "-XX:TieredStopAtLevel=1", *java.trust_options()]
        command += [f"-Divy.default.ivy.user.dir={scratch / 'user'}", "-jar", str(ivy_jar())]
        command += ["-cache", str(scratch / "cache"), "-ivy", str(file), "-confs", "default", "-retrieve", pattern]
        command += ["-settings", str(settings)] if settings else []
        lines: list[str] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
            assert ivy.stdout is not None
            for line in ivy.stdout:
                lines.append(line.rstrip())
                if "[SUCCESSFUL ]" in line:
                    count()
        return _what_failed(lines) if ivy.returncode else ""

    def _java(self) -> Java:
        for major in JAVA:
            found = installed_jre(major) or system_java(major)[0]
            if found:
                return found
        return find_java(JAVA[0], self._report)


def ivy_jar() -> Path:
    """The Ivy among PySpark's jars. Raises CdcError(STACK_MISSING)."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec and spec.submodule_search_locations) or []:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise CdcError(
        Code.STACK_MISSING,
        "PySpark, whose Ivy downloads the servers' jars, is not installed.",
        "Run: pip install 'cassandra-cdc-materializer[dev]'",
    )


def jars_xml(coordinates: Iterable[str]) -> str:
    """Ivy's description of single jars, `group:artifact:version`, maybe with `:classifier` and `:extension`."""
    return _module([line for coordinate in coordinates for line in _single_jar(coordinate)])


def _single_jar(coordinate: str) -> list[str]:
    group, artifact, version, *others = coordinate.split(":")
    more = f" e:classifier={quoteattr(others[0])}" if others and others[0] else ""
    extension = quoteattr(others[1] if len(others) > 1 else "jar")
    return [
        f"    <dependency {_attributes(f'{group}:{artifact}:{version}')} transitive='false' conf='default->*'>",
        f"      <artifact name={quoteattr(artifact)} type={extension} ext={extension}{more}/>",
        "    </dependency>",
    ]


def resolution_xml(coordinates: Iterable[str], excludes: Iterable[str]) -> str:
    """Ivy's description of jars with all that they need; a jar with a classifier needs nothing."""
    lines: list[str] = []
    for one in coordinates:
        is_single = one.count(":") > 2
        lines += _single_jar(one) if is_single else [f"    <dependency {_attributes(one)} conf='default->default'/>"]
    return _module([*lines, *(f"    <exclude {_attributes(one)}/>" for one in excludes)])


def _module(dependencies: Iterable[str]) -> str:
    return "\n".join(
        [
            '<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">',
            '  <info organisation="local" module="stack"/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *dependencies,
            "  </dependencies>",
            "</ivy-module>",
        ]
    )


def _attributes(coordinate: str) -> str:
    parts = coordinate.split(":")
    names = ("org", "name", "rev") if len(parts) == len(("org", "name", "rev")) else ("org", "module")
    return " ".join(f"{name}={quoteattr(part)}" for name, part in zip(names, parts, strict=True))


def _what_failed(lines: Iterable[str]) -> str:
    """The lines in which Ivy says what went wrong, otherwise its last ones."""
    kept = [line for line in lines if line.strip() and "====" not in line]
    problems = [line for line in kept if re.search(r"not found|error|exception|FAILED", line, re.IGNORECASE)]
    return "\n".join((problems or kept)[-SHOWN_ERROR_LINES:])

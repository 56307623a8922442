"""Finds Cassandra's CQL tests in a checkout or in a jar of its sources, and makes a case of each test method."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from dev.verify.cassandra_tests.cases import Case
from dev.verify.cassandra_tests.interpreter import Interpreter, lineage
from dev.verify.cassandra_tests.java_parser import parse_class
from dev.verify.cassandra_tests.java_tokens import JavaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dev.verify.cassandra_tests.java_tree import JavaClass

FOLDER = "org/apache/cassandra/cql3/validation/"
FIX = "Set SOURCE to a checkout of apache/cassandra, or to a jar of its tests' sources."


def read_classes(source: Path) -> tuple[dict[str, JavaClass], dict[str, str]]:
    """Return the classes by name, and why others are not understood. Raises CdcError if there are none."""
    classes: dict[str, JavaClass] = {}
    problems: dict[str, str] = {}
    for path, text in sorted(_files(source)):
        try:
            parsed = parse_class(text)
            classes[parsed.name] = parsed
        except JavaError as error:
            problems[path] = str(error)
    if not classes:
        raise CdcError(Code.STACK_MISSING, f"{source} holds no Java files of {FOLDER}.", FIX)
    return classes, problems


def _files(source: Path) -> Iterator[tuple[str, str]]:
    if source.is_dir():
        for file in source.rglob("*.java"):
            if FOLDER in file.as_posix():
                yield file.relative_to(source).as_posix(), file.read_text(encoding="utf-8")
        return
    try:
        with zipfile.ZipFile(source) as jar:
            for name in jar.namelist():
                if FOLDER in name and name.endswith(".java"):
                    yield name, jar.read(name).decode()
    except (OSError, zipfile.BadZipFile) as error:
        raise CdcError(Code.STACK_MISSING, f"{source} cannot be read ({error}).", FIX) from error


def case_names(classes: Mapping[str, JavaClass]) -> list[str]:
    """Class.method of each test method, in the order of the sources."""
    return [
        f"{parsed.name}.{method.name}"
        for parsed in classes.values()
        for method in parsed.methods
        if "Test" in method.annotations
    ]


def read_case(classes: Mapping[str, JavaClass], name: str, keyspace: str) -> Case:
    """The statements of a test method, for a keyspace of its own."""
    of, _, called = name.partition(".")
    case = Case(name)
    method = next(candidate for candidate in classes[of].methods if candidate.name == called)
    Interpreter(case, keyspace, lineage(of, classes)).run(method)
    return case

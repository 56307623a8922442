"""Who imports whom where import-linter does not look: tests and dev are not distributed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.process.paths import project_root
from dev.tools.reference.module_map import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAMS = tuple(name for name in PACKAGES if name != "dev")
CHECKOUT = ("dev", "tests")
RUN_OTHER_TESTS = {
    "tests/unit/materializer/fold/test_backlog_mutants.py",  # to see that each finds a seeded defect
    "tests/unit/materializer/fold/test_mutants.py",  # to see that each finds a seeded defect
    "tests/unit/materializer/fold/test_native_fold.py",  # with the native core and the Python code side by side
    "tests/servers/archive/test_rest_catalog.py",  # with a REST catalog
}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def offenders(folder: str, *forbidden: str) -> list[tuple[str, str]]:
    root = project_root()
    return [
        (str(file.relative_to(root)), module)
        for file in sorted((root / folder).rglob("*.py"))
        for module in imported(file)
        if any(is_within(module, name) for name in forbidden)
    ]


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("package", PROGRAMS)
def test_programs_import_nothing_of_a_checkout(package: str) -> None:
    assert not offenders(package, *CHECKOUT)


@pytest.mark.parametrize("folder", ["dev/bench", "dev/verify", "tests/support"])
def test_shared_helpers_are_in_support(folder: str) -> None:
    assert not [found for found in offenders(folder, "tests") if not is_within(found[1], "tests.support")]


@pytest.mark.parametrize("folder", ["unit", "servers", "e2e"])
def test_tests_import_helpers_and_no_other_tests(folder: str) -> None:
    found = [found for found in offenders(f"tests/{folder}", "tests") if not is_within(found[1], "tests.support")]
    assert {file for file, _ in found} <= RUN_OTHER_TESTS


def test_vectors_are_data() -> None:
    assert not list((project_root() / "tests" / "vectors").rglob("*.py"))


def test_local_stack_imports_no_tests() -> None:
    assert not offenders("dev/local_stack", "tests", "dev.verify", "dev.bench")

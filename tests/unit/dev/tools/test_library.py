"""docs/library.md: each example runs and prints what the page shows. The reference is fresh, and complete."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys

import pytest

from dev.local_stack.process.paths import project_root
from dev.tools.reference.library_api import PACKAGES, library_api_page, public_names

ROOT = project_root()
TEXT = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"### ([^\n]+)\n(?:(?!###).)*?```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize(("code", "expected"), [pytest.param(*rest, id=title) for title, *rest in EXAMPLES])
def test_an_example_prints_what_the_page_shows(code: str, expected: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (expected, "")
    assert expected


def test_the_reference_is_fresh() -> None:
    """If not: make docs-reference."""
    page = ROOT / "docs" / "reference" / "library-api.md"
    assert page.read_text(encoding="utf-8") == library_api_page()


def test_a_field_has_the_comment_above_it() -> None:
    page = library_api_page()
    assert "\n    # The logical offset up to which the segment is durable.\n    offset: int\n" in page
    fields = (
        "    # The id of the segment.\n    segment_id: int\n"
        "    # The offset in the segment, in bytes.\n    position: int\n"
    )
    assert f"\nclass CommitLogPosition(NamedTuple)\n{fields}```\n" in page


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names(package: str) -> None:
    module = importlib.import_module(package)
    names = list(public_names(package))
    assert sorted(name.name for name in names) == sorted(module.__all__) == sorted(dir(module))
    for name in names:
        value = getattr(module, name.name)
        assert value is getattr(importlib.import_module(f"{package}.{name.module}"), name.name)
        documented = isinstance(name.node, ast.AnnAssign) or ast.get_docstring(name.node)
        assert documented, name.name
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(module, "nonsense")  # noqa: B009 - mypy knows that it is not there


def test_importing_a_package_loads_no_module_of_it() -> None:
    """The filler has none of the compressors that cassandra_storage.files needs for SSTables."""
    code = (
        "import sys, cassandra_storage.files as files\n"
        "within = ('cassandra_storage.files.', 'cassandra_storage.formats')\n"
        "print([name for name in sys.modules if name.startswith(within)])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

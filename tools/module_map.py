"""Writes the module map of docs/architecture.md from the modules' docstrings: `python -m tools.module_map`."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from local_stack.process.paths import project_root

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = (
    "cassandra_storage",
    "cassandra_files",
    "cdc_messages",
    "cdc_program",
    "publisher",
    "filler",
    "materializer",
    "schematizer",
    "cassandra_commitlog",
    "local_stack",
)
HEADING = "## Module map\n"


def main() -> int:
    page = project_root() / "docs" / "architecture.md"
    page.write_text(with_module_map(page.read_text()))
    return 0


def with_module_map(page: str) -> str:
    """The page with its last section made anew."""
    before, _, _ = page.partition(HEADING)
    return before + HEADING + "\n" + module_map()


def module_map() -> str:
    """A table for each package: module and the first paragraph of its docstring."""
    return "\n".join(_package(project_root() / name) for name in PACKAGES)


def _package(folder: Path) -> str:
    modules = sorted(path for path in folder.rglob("*.py") if path.name[0] != "_")
    rows = [f"| `{path.relative_to(folder)}` | {_summary(path)} |" for path in modules]
    about = _summary(folder / "__init__.py")
    heading = f"### {folder.name}\n\n" + (f"{about}\n\n" if about else "")
    return heading + "\n".join(["| module | what it is |", "| --- | --- |", *rows]) + "\n"


def _summary(path: Path) -> str:
    """The first paragraph of the docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return paragraph.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())

"""The table of packages in docs/internals/code.md, from their docstrings."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = (
    "cassandra_storage",
    "cdc_common",
    "cdc_native",
    "publisher",
    "filler",
    "stream_runtime",
    "materializer",
    "schematizer",
    "transformer",
    "joinery",
    "archive",
    "warehouse",
    "cassandra_cdc_testcontainers",
    "dev",
)
HEADING = "## Packages and rooms\n"
INTRODUCTION = """
A room is a package within a package. The docstring of its `__init__.py` says what it holds, and each module's docstring
says what the module does. The docstrings of `publisher` and `materializer` follow a message through the rooms.

| package | what it is | rooms |
| --- | --- | --- |
"""


def with_module_map(page: str) -> str:
    """The page with a fresh last section."""
    before, _, _ = page.partition(HEADING)
    return before + HEADING + module_map()


def module_map() -> str:
    """A row for each package: its name, its docstring's first paragraph, and the names of its rooms."""
    root = project_root()
    return INTRODUCTION + "".join(_row(root / name) for name in PACKAGES)


def _row(package: Path) -> str:
    names = ", ".join(room.name for room in rooms(package) if room.parent == package) or "none"
    return f"| `{package.name}` | {summary(package)} | {names} |\n"


def rooms(package: Path) -> list[Path]:
    """The folders of a package that are packages themselves, however deep."""
    return sorted(file.parent for file in package.rglob("__init__.py") if file.parent != package)


def modules(folder: Path) -> list[Path]:
    """The modules of a package or room, without those of its rooms."""
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def summary(path: Path) -> str:
    """The first paragraph of a module's or package's docstring, on one line; empty if there is none."""
    file = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return paragraph.replace("|", "\\|")

"""Writes the map of packages and rooms in docs/how-it-works.md from their docstrings: `python -m tools.module_map`."""

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
    "cdc_native",
    "cdc_program",
    "publisher",
    "filler",
    "materializer",
    "schematizer",
    "transformer",
    "cassandra_commitlog",
    "cassandra_sstable",
    "local_stack",
)
CHECKOUT_PACKAGES = ("tools", "verify", "bench")
HEADING = "## Packages and rooms\n"


def main() -> int:
    page = project_root() / "docs" / "how-it-works.md"
    page.write_text(with_module_map(page.read_text()))
    return 0


def with_module_map(page: str) -> str:
    """The page with a fresh last section."""
    before, _, _ = page.partition(HEADING)
    return before + HEADING + "\n" + module_map()


def module_map() -> str:
    """A row for each package and each room: its name, how many modules it has, its docstring's first paragraph."""
    root = project_root()
    folders = [folder for name in (*PACKAGES, *CHECKOUT_PACKAGES) for folder in (root / name, *rooms(root / name))]
    rows = [f"| `{folder.relative_to(root)}` | {len(modules(folder))} | {summary(folder)} |" for folder in folders]
    return "\n".join(["| package or room | modules | what it is |", "| --- | ---: | --- |", *rows]) + "\n"


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


if __name__ == "__main__":
    sys.exit(main())

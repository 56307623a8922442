"""Checks the fields of records: `python -m dev.tools.fields [PATH ...]` (make lint).

In the folders that `[fields]` of dev/tools/words.toml lists, each field of a public record has a comment: on the lines
before it or at its end, or a description that pydantic shows. A record is a dataclass, a NamedTuple, a TypedDict or a
model of pydantic.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dev.tools.words import RULES, Finding, print_findings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

BASES = frozenset({"BaseModel", "NamedTuple", "TypedDict"})
DECORATOR = "dataclass"
_FIX = "a comment above the field: what it is, and its unit"


@dataclass(frozen=True)
class FieldCheck:
    """Finds the fields of records that have no comment."""

    # Folders, each with a slash at its end.
    folders: tuple[str, ...]

    @classmethod
    def read(cls, file: Path = RULES) -> FieldCheck:
        """Raises OSError or ValueError where the file cannot be read."""
        return cls(tuple(tomllib.loads(file.read_text(encoding="utf-8"))["fields"]["folders"]))

    def checks(self, path: str) -> bool:
        """Whether the file is Python in one of the folders: `path` is relative to the project's folder."""
        return path.endswith(".py") and path.startswith(self.folders)

    def findings(self, path: str, text: str) -> list[Finding]:
        """Return the findings in a file's text, in the order of the lines."""
        lines = text.split("\n")
        found = [
            Finding(path, field.lineno, f"{record.name}.{name}", _FIX)
            for record in public_records(ast.parse(text))
            for name, field in public_fields(record)
            if not has_comment(field, lines) and not has_description(field)
        ]
        return sorted(found, key=lambda finding: finding.line)


def public_records(module: ast.Module) -> list[ast.ClassDef]:
    """Return the records of a module that other modules see. A class that inherits from a record of the same module is
    one too.
    """
    bases = set(BASES)
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and _is_record(node, bases):
            bases.add(node.name)
            found.append(node)
    return [node for node in found if not node.name.startswith("_")]


def _is_record(node: ast.ClassDef, bases: Collection[str]) -> bool:
    return any(_name(base) in bases for base in node.bases) or any(
        _name(decorator) == DECORATOR for decorator in node.decorator_list
    )


def public_fields(record: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign]]:
    """Yield each public field of a record with its name. A variable of the class is no field."""
    for statement in record.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if not name.startswith("_") and _name(statement.annotation) != "ClassVar":
                yield name, statement


def has_comment(field: ast.AnnAssign, lines: Sequence[str]) -> bool:
    """Whether a comment stands on the line before the field, or at its end."""
    after = lines[(field.end_lineno or field.lineno) - 1].encode()[field.end_col_offset :]
    return lines[field.lineno - 2].lstrip().startswith("#") or after.lstrip().startswith(b"#")


def has_description(field: ast.AnnAssign) -> bool:
    """Whether pydantic shows a description of the field."""
    return any(
        isinstance(node, ast.keyword) and node.arg == "description"
        for part in (field.annotation, field.value)
        if part is not None
        for node in ast.walk(part)
    )


def _name(node: ast.expr) -> str:
    """Return the last name of `name`, `module.name`, `name(...)` or `name[...]`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def main(arguments: Sequence[str] | None = None) -> int:
    paths = sys.argv[1:] if arguments is None else arguments
    return print_findings(FieldCheck.read(), paths, "The folders that are checked: [fields] in")


if __name__ == "__main__":
    sys.exit(main())

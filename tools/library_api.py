"""Writes docs/reference/library-api.md from the signatures and docstrings: `python -m tools.library_api`."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = project_root()
PAGE = ROOT / "docs" / "reference" / "library-api.md"
PACKAGES = ("cassandra_storage", "cassandra_files", "cassandra_commitlog", "cassandra_sstable")
HEAD = """# Library reference

For programs that import `cassandra_storage`, `cassandra_files`, `cassandra_commitlog` or `cassandra_sstable`: their
public names. [library.md](../library.md) has examples.

Made by `python -m tools.library_api` from the docstrings; do not edit.
"""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef | ast.AnnAssign


class Name(NamedTuple):
    """A public name: the module that defines it, and its definition there."""

    package: str
    module: str
    name: str
    node: Definition


def page() -> str:
    parts = [HEAD]
    for package in PACKAGES:
        parts.append(f"## {package}\n\n{_prose(importlib.import_module(package).__doc__)}\n")
        parts += [_entry(name) for name in public_names(package)]
    return "\n".join(parts)


def public_names(package: str) -> Iterator[Name]:
    """In the order of their modules, and there in the order of the source. KeyError for a name without a definition."""
    for module, names in importlib.import_module(package)._MODULES.items():  # noqa: SLF001 - what __all__ comes from
        found = definitions(f"{package}/{module}.py")
        for name in sorted(names, key=lambda one: found[one].lineno):
            yield Name(package, module, name, found[name])


def definitions(path: str) -> dict[str, Definition]:
    """The functions, classes and annotated names of a module, by name."""
    found: dict[str, Definition] = {}
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


def _entry(name: Name) -> str:
    node = name.node
    file = f"{name.package}/{name.module}.py"
    parts = [f"### {name.name}", f"In [`{file}`](../../{file}).", f"```python\n{_signature(node)}\n```"]
    if not isinstance(node, ast.AnnAssign):
        parts.append(_prose(ast.get_docstring(node)))
    if isinstance(node, ast.ClassDef):
        parts += [f"- `{_member(member)}`{_described(member)}" for member in _members(node)]
    return "\n\n".join(part for part in parts if part).replace("\n\n- ", "\n- ").replace("\n- ", "\n\n- ", 1) + "\n"


def _signature(node: Definition) -> str:
    if isinstance(node, ast.AnnAssign):
        value = ast.unparse(node.value) if node.value else ""
        return f"{ast.unparse(node.target)} = {value.strip(chr(39))}"
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        fields = [f"    {ast.unparse(one)}" for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign)]
        fields = [one for one in fields if not one.startswith("    _")]
        start = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        made = [f"    def {_call(start)}"] if start else []
        return "\n".join([f"class {node.name}{f'({bases})' if bases else ''}", *fields, *made])
    return f"def {_call(node)}"


def _call(node: Function) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def _members(node: ast.ClassDef) -> Iterator[Function]:
    """The public methods and properties."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_"):
            yield one


def _member(node: Function) -> str:
    """A method with its arguments, or a property with its type; without `self`."""
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        return f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name
    call = _call(node)
    for first in ("self", "cls"):
        call = call.replace(f"({first}, ", "(", 1).replace(f"({first})", "()", 1)
    return call


def _described(node: Function) -> str:
    text = ast.get_docstring(node)
    return f": {' '.join(text.split())}" if text else ""


def _prose(text: str | None) -> str:
    """Paragraphs, each on one line; an empty line between them."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

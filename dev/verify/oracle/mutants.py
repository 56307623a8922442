"""Mutants of a module: each differs from it in one decision."""

from __future__ import annotations

import ast
import copy
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.Lt,
    ast.Lt: ast.Gt,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


_Node: TypeAlias = ast.expr | ast.If


class Mutant(NamedTuple):
    """A module with one changed decision."""

    # The name of the function.
    function: str
    # The function, and its expression or condition before and after, as Python writes it.
    name: str
    # The source of the whole module.
    source: str

    def module(self, of: ModuleType) -> ModuleType:
        """A module like `of`, from the mutant's source; what it imports are the real ones."""
        made = ModuleType(of.__name__)
        exec(compile(self.source, f"<mutant of {of.__name__}: {self.name}>", "exec"), made.__dict__)  # noqa: S102
        return made


def mutants(source: str) -> Iterator[Mutant]:
    """One for each comparison, condition, `and`, `or`, `not` and `max` in the functions of a module; two for an if."""
    tree = ast.parse(source)
    sites = len(list(_sites(tree)))
    for index in range(sites):
        mutated = copy.deepcopy(tree)
        function, node, change = list(_sites(mutated))[index]
        before = _text(node)
        change()
        yield Mutant(function, f"{function}: {before} -> {_text(node)}", ast.unparse(mutated))


def _sites(tree: ast.Module) -> Iterator[tuple[str, _Node, Callable[[], None]]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    if isinstance(node, ast.expr | ast.If):
                        yield from ((function.name, node, change) for change in _changes(node))


def _changes(node: _Node) -> Iterator[Callable[[], None]]:
    if isinstance(node, ast.If):
        for always in (True, False):
            yield partial(setattr, node, "test", ast.Constant(always))
    else:
        change = _change(node)
        if change is not None:
            yield change


def _change(node: ast.expr) -> Callable[[], None] | None:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _OTHER:
            return lambda: setattr(node, "ops", [_OTHER[type(operator)]()])
        case ast.BoolOp(op=joint):
            other = ast.Or() if isinstance(joint, ast.And) else ast.And()
            return lambda: setattr(node, "op", other)
        case ast.IfExp(body=body, orelse=orelse):
            return lambda: node.__dict__.update(body=orelse, orelse=body)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), operand))
        case ast.Call(func=ast.Name(id="max") as name):
            return lambda: setattr(name, "id", "min")
    return None


def _text(node: _Node) -> str:
    return f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else ast.unparse(node)

"""Runs a test method without Java and without a server, and lists the CQL that it sends.

A value that only Java or an answer of the server could tell is not guessed: its statement is skipped and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from dev.verify.cassandra_tests import java_tree as tree
from dev.verify.cassandra_tests.evaluator import Evaluator, Frame, Function
from dev.verify.cassandra_tests.java_values import NoValueError
from dev.verify.cassandra_tests.tester import Tester

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dev.verify.cassandra_tests.cases import Case
    from dev.verify.cassandra_tests.java_tree import JavaClass, Method

MOST_ROUNDS = 300  # of a loop
DEEPEST = 30  # calls of methods of the tests


class Returned(Exception):  # noqa: N818 - no error, but how a method ends
    """A method ends with a value."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class Jumped(Exception):  # noqa: N818 - no error, but how a loop goes on
    """A loop ends or goes on, or something is thrown: `kind` says which."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Interpreter(Evaluator):
    """Runs one case: the fields of its class and of the classes that it extends, `@Before` methods, the method."""

    def __init__(self, case: Case, keyspace: str, lineage: Sequence[JavaClass]) -> None:
        super().__init__(Tester(case, keyspace))
        self._case = case
        self._methods = [method for ancestor in lineage for method in ancestor.methods]
        self._depth = 0
        for ancestor in reversed(lineage):
            for declared in ancestor.fields:
                self._declare(declared, self.fields)

    def run(self, method: Method) -> None:
        """List the statements of the method, after those of the methods that run before each test."""
        for before in [method for method in reversed(self._methods) if "Before" in method.annotations]:
            self.run_method(before, ())
        try:
            self.run_method(method, ())
        except (Jumped, NoValueError) as end:
            self._case.skipped[f"the method ends: {end}"] += 1

    def find_method(self, name: str, count: int) -> Method | None:
        """Return the method of the tests that takes so many arguments."""
        named = [method for method in self._methods if method.name == name]
        exact = [method for method in named if len(method.parameters) == count and not method.has_varargs]
        varied = [method for method in named if method.has_varargs and count >= len(method.parameters) - 1]
        return next(iter((*exact, *varied)), None)

    def run_method(self, method: Method, arguments: Sequence[object]) -> object:
        if method.body is None:
            self._case.skipped[f"not parsed: {method.problem}"] += 1
            raise NoValueError(f"{method.name} is not parsed")
        if self._depth >= DEEPEST:
            raise NoValueError(f"{method.name} calls itself too often")
        values = list(arguments)
        if method.has_varargs:
            fixed = len(method.parameters) - 1
            rest = values[fixed:]
            is_array = len(rest) == 1 and isinstance(rest[0], list)
            values = [*values[:fixed], rest[0] if is_array else rest]
        return self._call(method.body, dict(zip(method.parameters, values, strict=False)))

    def run_function(self, function: Function, arguments: Sequence[object]) -> object:
        """Run a lambda: it sees the variables around it."""
        bound = dict(zip(function.parameters, arguments, strict=False))
        return self._call(function.body, {**function.frame, **bound})

    def _call(self, body: tree.Block, variables: Frame) -> object:
        outer, self.variables = self.variables, variables
        self._depth += 1
        try:
            self._run(body)
        except Returned as returned:
            return returned.value
        finally:
            self.variables = outer
            self._depth -= 1
        return None

    def _run(self, statement: tree.Statement) -> None:  # noqa: C901 - one branch for each kind
        match statement:
            case tree.Block():
                for inner in statement.statements:
                    self._run(inner)
            case tree.Declare():
                self._declare(statement, self.variables)
            case tree.Evaluate():
                self._evaluate(statement.expression)
            case tree.If():
                self._if(statement)
            case tree.Loop():
                self._loop(statement)
            case tree.ForEach():
                self._for_each(statement)
            case tree.Try():
                self._try(statement)
            case tree.Return():
                raise Returned(None if statement.value is None else self.value_or_none(statement.value))
            case tree.Jump():
                self._jump(statement)
            case tree.Unsupported():
                self._case.skipped[f"a {statement.text}"] += 1

    def _evaluate(self, expression: tree.Expression) -> None:
        """A value that is not known matters only where a statement needs it, which has then been counted."""
        self.value_or_none(expression)

    @staticmethod
    def _jump(statement: tree.Jump) -> NoReturn:
        raise Jumped(statement.kind)

    def _declare(self, declared: tree.Declare, frame: Frame) -> None:
        if declared.value is None:
            frame[declared.name] = NoValueError(f"{declared.name} without a value")
            return
        try:
            frame[declared.name] = self.value(declared.value)
        except NoValueError as error:
            frame[declared.name] = error

    def _if(self, statement: tree.If) -> None:
        try:
            is_met = self.value(statement.condition)
        except NoValueError as error:
            self._case.skipped[f"an if: {error}"] += 1
            return
        if is_met:
            self._run(statement.then)
        elif statement.otherwise is not None:
            self._run(statement.otherwise)

    def _loop(self, loop: tree.Loop) -> None:
        for first in loop.first:
            self._run(first)
        try:
            for _ in range(MOST_ROUNDS):
                if not self.value(loop.condition):
                    return
                if not self._round(loop.body):
                    return
                for update in loop.updates:
                    self.value(update)
        except NoValueError as error:
            self._case.skipped[f"a loop: {error}"] += 1
            return
        self._case.skipped[f"a loop after {MOST_ROUNDS} rounds"] += 1

    def _for_each(self, loop: tree.ForEach) -> None:
        try:
            items = self.value(loop.items)
        except NoValueError as error:
            self._case.skipped[f"a loop: {error}"] += 1
            return
        if not isinstance(items, list):
            self._case.skipped[f"a loop over a {type(items).__name__}"] += 1
            return
        for item in items[:MOST_ROUNDS]:
            self.variables[loop.name] = item
            if not self._round(loop.body):
                return

    def _round(self, body: tree.Statement) -> bool:
        """Whether the loop goes on."""
        try:
            self._run(body)
        except Jumped as jump:
            if jump.kind == "throw":
                raise
            return jump.kind == "continue"
        return True

    def _try(self, statement: tree.Try) -> None:
        """An exception that is thrown is caught: the test expects it."""
        try:
            self._run(statement.body)
        except Jumped as jump:
            if jump.kind != "throw":
                raise
        finally:
            self._run(statement.last)


def lineage(name: str, classes: Mapping[str, JavaClass]) -> list[JavaClass]:
    """The class and those that it extends, as far as they are known."""
    found: list[JavaClass] = []
    while name in classes and classes[name] not in found:
        found.append(classes[name])
        name = classes[name].parent
    return found

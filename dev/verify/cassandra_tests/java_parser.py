"""Parses a Java test class: its methods and fields, with the statements of each method.

Only what the tests of CQL use is parsed. What is not leaves its method without a body, and the method says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dev.verify.cassandra_tests import java_tree as tree
from dev.verify.cassandra_tests.java_expressions import ExpressionParser
from dev.verify.cassandra_tests.java_tokens import JavaError, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dev.verify.cassandra_tests.java_tokens import Token

MODIFIERS = frozenset({"public", "private", "protected", "static", "final", "abstract", "synchronized", "transient"})
TYPES = frozenset({"class", "interface", "enum"})


def parse_class(source: str) -> tree.JavaClass:
    """Return the first class of a file. Raises JavaError."""
    return ClassParser(tokens(source)).parse()


class StatementParser(ExpressionParser):
    """Parses the statements of a method's body."""

    def block(self) -> tree.Block:
        self.expect("{")
        statements = []
        while not self.at("}"):
            statements.append(self.statement())
        self.expect("}")
        return tree.Block(tuple(statements))

    def statement(self) -> tree.Statement:  # noqa: C901, PLR0911 - one branch for each kind of statement
        if self.at("{"):
            return self.block()
        if self.take("if"):
            return self._if()
        if self.take("for"):
            return self._for()
        if self.take("while"):
            return tree.Loop((), self.parenthesized(), (), self.statement())
        if self.take("try"):
            return self._try()
        if self.take("synchronized"):
            self.parenthesized()
            return self.block()
        if self.take("return"):
            value = None if self.at(";") else self.expression()
            self.expect(";")
            return tree.Return(value)
        if self.at("break", "continue", "throw"):
            kind = self.next().text
            self.skip_to(";")
            return tree.Jump(kind)
        if self.at("switch", "do", "class", "interface", "enum", "assert"):
            return self._unsupported()
        if self.take(";"):
            return tree.Block(())
        declared = self._declaration()
        if declared is not None:
            self.expect(";")
            return declared
        expression = self.expression()
        self.expect(";")
        return tree.Evaluate(expression)

    def _unsupported(self) -> tree.Statement:
        kind = self.next().text
        if kind == "assert":
            self.skip_to(";")
            return tree.Block(())
        while not self.at("{"):
            self.next()
        self.skip_braces()
        if kind == "do":
            self.skip_to(";")
        return tree.Unsupported(kind)

    def _if(self) -> tree.If:
        condition, then = self.parenthesized(), self.statement()
        return tree.If(condition, then, self.statement() if self.take("else") else None)

    def _for(self) -> tree.Statement:
        self.expect("(")
        start = self.position
        name = self._typed_name()
        if name and self.take(":"):
            items = self.expression()
            self.expect(")")
            return tree.ForEach(name, items, self.statement())
        self.position = start
        first = self._first()
        self.expect(";")
        condition = tree.Literal(value=True) if self.at(";") else self.expression()
        self.expect(";")
        updates = []
        while not self.at(")"):
            updates.append(self.expression())
            self.take(",")
        self.expect(")")
        return tree.Loop(first, condition, tuple(updates), self.statement())

    def _first(self) -> tuple[tree.Statement, ...]:
        if self.at(";"):
            return ()
        declared = self._declaration()
        return (declared if declared is not None else tree.Evaluate(self.expression()),)

    def _try(self) -> tree.Try:
        resources: list[tree.Statement] = []
        if self.take("("):
            while not self.at(")"):
                declared = self._declaration()
                resources.append(declared if declared is not None else tree.Evaluate(self.expression()))
                self.take(";")
            self.expect(")")
        body = self.block()
        last = tree.Block(())
        while self.at("catch", "finally"):
            if self.take("finally"):
                last = self.block()
            else:
                self.next()
                self.skip_parentheses()
                self.block()
        return tree.Try(tree.Block((*resources, body)), last)

    def _declaration(self) -> tree.Statement | None:
        """Declared variables without the semicolon; None, and nothing is read, if it is an expression."""
        start = self.position
        name = self._typed_name()
        if name is None or not self.at("=", ";", ",", "["):
            self.position = start
            return None
        declared = [self._declared(name)]
        while self.take(","):
            declared.append(self._declared(self.next().text))
        return declared[0] if len(declared) == 1 else tree.Block(tuple(declared))

    def _declared(self, name: str) -> tree.Declare:
        while self.take("["):
            self.expect("]")
        return tree.Declare(name, self.initializer() if self.take("=") else None)

    def _typed_name(self) -> str | None:
        """The name that follows a type; None if it is something else."""
        while self.at("final", "@"):
            if self.next().text == "@":
                self.skip_annotation()
        if self.peek().kind != "name" or not self.skip_type() or self.peek().kind != "name":
            return None
        return None if self.at("instanceof") else self.next().text


class ClassParser(StatementParser):
    """Parses one file."""

    def __init__(self, found: Iterable[Token]) -> None:
        super().__init__(list(found))

    def parse(self) -> tree.JavaClass:
        while not self.at("class"):
            if self.peek().kind == "end":
                raise JavaError("there is no class")
            if self.take("@"):
                self.skip_annotation()
            else:
                self.next()
        self.expect("class")
        parsed = tree.JavaClass(self.next().text)
        while not self.at("{"):
            if self.take("extends"):
                parsed.parent = self.peek().text
            self.next()
        self.expect("{")
        while not self.at("}"):
            self._member(parsed)
        return parsed

    def _member(self, parsed: tree.JavaClass) -> None:
        annotations = self._modifiers()
        if self.take(";"):
            return
        if self.at("{"):  # an initializer
            self.skip_braces()
        elif self.at(*TYPES):
            while not self.at("{"):
                self.next()
            self.skip_braces()
        else:
            self._method_or_field(parsed, annotations)

    def _modifiers(self) -> frozenset[str]:
        """Read modifiers and annotations; return the latter."""
        found = set()
        while self.at("@", *MODIFIERS):
            if self.next().text != "@":
                continue
            if self.at("interface"):
                break
            found.add(self.skip_annotation())
        return frozenset(found)

    def _method_or_field(self, parsed: tree.JavaClass, annotations: frozenset[str]) -> None:
        if self.at("<"):
            self.skip_generics()
        if self.peek(1).is_mark("(") or self.skip_type():  # a constructor
            name = self.next().text
        else:
            raise JavaError(f"a member begins with {self.peek().text!r}")
        if self.at("("):
            self._method(parsed, name, annotations)
            return
        start = self.position
        try:
            declared = [self._declared(name)]
            while self.take(","):
                declared.append(self._declared(self.next().text))
            self.expect(";")
            parsed.fields += [field for field in declared if field.value is not None]
        except JavaError:
            self.position = start
            self.skip_to(";")

    def _method(self, parsed: tree.JavaClass, name: str, annotations: frozenset[str]) -> None:
        names, has_varargs = self._parameters()
        while not self.at("{", ";"):
            self.next()
        if self.take(";"):
            return
        start = self.position
        body, problem = None, ""
        try:
            body = self.block()
        except JavaError as error:
            problem = str(error)
        self.position = start
        self.skip_braces()
        parsed.methods.append(tree.Method(name, annotations, names, has_varargs, body, problem))

    def _parameters(self) -> tuple[tuple[str, ...], bool]:
        self.expect("(")
        names, has_varargs = [], False
        while not self.at(")"):
            self._modifiers()
            self.skip_type()
            has_varargs = self.take("...") or has_varargs
            names.append(self.next().text)
            while self.take("["):
                self.expect("]")
            self.take(",")
        self.expect(")")
        return tuple(names), has_varargs

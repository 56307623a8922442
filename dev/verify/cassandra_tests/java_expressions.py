"""Parses Java expressions, and steps over what has no value: types, annotations, bodies of anonymous classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dev.verify.cassandra_tests import java_tree as tree
from dev.verify.cassandra_tests.java_tokens import END, JavaError
from dev.verify.cassandra_tests.java_values import number

if TYPE_CHECKING:
    from dev.verify.cassandra_tests.java_tokens import Token

PRIMITIVES = frozenset({"int", "long", "short", "byte", "float", "double", "boolean", "char", "void"})
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=")
LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">=", "instanceof"),
    ("<<",),
    ("+", "-"),
    ("*", "/", "%"),
)
CONSTANTS = {"true": True, "false": False, "null": None}
PAIRS = {"(": ")", "{": "}", "[": "]"}


class ExpressionParser:
    """Reads tokens from `position` on. Each method raises JavaError where the source is not what it reads."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self.position = 0

    # Tokens.

    def peek(self, ahead: int = 0) -> Token:
        at = self.position + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def next(self) -> Token:
        token = self.peek()
        if token is END:
            raise JavaError("the source ends")
        self.position += 1
        return token

    def at(self, *texts: str) -> bool:
        return self.peek().is_mark(*texts)

    def take(self, text: str) -> bool:
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            around = " ".join(token.text for token in self._tokens[self.position : self.position + 6])
            raise JavaError(f"{text!r} expected at {around!r}")

    def skip_to(self, text: str) -> None:
        """Step over all up to and with the next such mark outside of brackets."""
        while not self.take(text):
            if self.at(*PAIRS):
                self._skip_pair()
            else:
                self.next()

    def skip_braces(self) -> None:
        self._skip_pair()

    def skip_parentheses(self) -> None:
        self._skip_pair()

    def _skip_pair(self) -> None:
        depth = 0
        while True:
            token = self.next()
            if token.is_mark(*PAIRS):
                depth += 1
            elif token.is_mark(*PAIRS.values()):
                depth -= 1
            if depth == 0:
                return

    def skip_annotation(self) -> str:
        """Step over what follows an `@`; return the annotation's name."""
        name = self.next().text
        while self.take("."):
            name = self.next().text
        if self.at("("):
            self.skip_parentheses()
        return name

    def skip_type(self) -> bool:
        """Whether there was a type."""
        if self.peek().kind != "name":
            return False
        self.next()
        while True:
            if self.at(".") and self.peek(1).kind == "name":
                self.position += 2
            elif self.at("<"):
                if not self.skip_generics():
                    return False
            elif self.at("[") and self.peek(1).is_mark("]"):
                self.position += 2
            else:
                return True

    def skip_generics(self) -> bool:
        """Whether what `<` begins was a list of types."""
        depth = 0
        while True:
            if self.take("<"):
                depth += 1
            elif self.take(">"):
                depth -= 1
            elif self.peek().kind == "name" or self.at(",", ".", "?", "[", "]", "&"):
                self.next()
            else:
                return False
            if depth == 0:
                return True

    # Expressions.

    def parenthesized(self) -> tree.Expression:
        self.expect("(")
        expression = self.expression()
        self.expect(")")
        return expression

    def initializer(self) -> tree.Expression:
        return self._array() if self.at("{") else self.expression()

    def expression(self) -> tree.Expression:
        lambda_ = self._lambda()
        if lambda_ is not None:
            return lambda_
        left = self._level(0)
        if self.take("?"):
            then = self.expression()
            self.expect(":")
            return tree.Conditional(left, then, self.expression())
        if self.at(*ASSIGNMENTS):
            operator = self.next().text
            return tree.Assign(left, operator, self.expression())
        return left

    def _lambda(self) -> tree.Lambda | None:
        if self.peek().kind == "name" and self.peek(1).is_mark("->"):
            names: tuple[str, ...] = (self.next().text,)
        else:
            start = self.position
            found = self._lambda_parameters()
            if found is None:
                self.position = start
                return None
            names = found
        self.expect("->")
        if self.at("{"):
            return tree.Lambda(names, self.block())
        return tree.Lambda(names, tree.Block((tree.Return(self.expression()),)))

    def block(self) -> tree.Block:
        raise NotImplementedError

    def _lambda_parameters(self) -> tuple[str, ...] | None:
        if not self.take("("):
            return None
        names = []
        while not self.take(")"):
            if self.peek().kind != "name":
                return None
            if not self.peek(1).is_mark(",", ")"):
                self.skip_type()
            if self.peek().kind != "name":
                return None
            names.append(self.next().text)
            self.take(",")
        return tuple(names) if self.at("->") else None

    def _level(self, level: int) -> tree.Expression:
        if level == len(LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self.at(*LEVELS[level]):
            operator = self.next().text
            if operator == "instanceof":
                self.skip_type()
                left = tree.Unknown("instanceof")
            elif operator in "<>" and self.at(">", "="):
                raise JavaError("a shift")
            else:
                left = tree.Binary(operator, left, self._level(level + 1))
        return left

    def _unary(self) -> tree.Expression:
        if self.at("-", "+", "!", "~", "++", "--"):
            operator = self.next().text
            return tree.Unary(operator, self._unary())
        cast = self._cast()
        return cast if cast is not None else self._postfix(self._primary())

    def _cast(self) -> tree.Cast | None:
        start = self.position
        if not self.take("(") or self.peek().kind != "name":
            self.position = start
            return None
        name = self.peek().text
        if self.skip_type() and self.take(")"):
            token = self.peek()
            is_value = token.kind in {"string", "char", "number", "name"} or token.is_mark("(")
            if name in PRIMITIVES or (is_value and not self.at("instanceof")):
                lambda_ = self._lambda()
                return tree.Cast(name, lambda_ if lambda_ is not None else self._unary())
        self.position = start
        return None

    def _primary(self) -> tree.Expression:  # noqa: PLR0911 - one for each kind of token
        token = self.next()
        if token.kind in {"string", "char"}:
            return tree.Literal(token.text)
        if token.kind == "number":
            return tree.Literal(number(token.text))
        if token.is_mark("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if token.kind != "name":
            raise JavaError(f"an expression begins with {token.text!r}")
        if token.text in CONSTANTS:
            return tree.Literal(CONSTANTS[token.text])
        if token.text == "new":
            return self._new()
        if token.text in PRIMITIVES:  # int[].class and the like
            self.skip_type()
            return tree.Unknown(token.text)
        if self.at("("):
            return tree.Call(None, token.text, self._arguments())
        return tree.Name(token.text)

    def _postfix(self, value: tree.Expression) -> tree.Expression:
        while True:
            if self.take("."):
                if self.at("<"):
                    self.skip_generics()
                if self.take("new"):
                    value = self._new()
                    continue
                name = self.next().text
                value = tree.Call(value, name, self._arguments()) if self.at("(") else tree.Field(value, name)
            elif self.at("[") and not self.peek(1).is_mark("]"):
                self.next()
                value = tree.Index(value, self.expression())
                self.expect("]")
            elif self.at("[") or self.at("::"):
                while self.take("["):
                    self.expect("]")
                self.next()
                if self.peek().kind == "name" and self.peek().text == "class":
                    self.next()
                value = tree.Unknown("::")
            elif self.at("++", "--"):
                value = tree.Assign(value, self.next().text[0] + "=", tree.Literal(1))
            else:
                return value

    def _arguments(self) -> tuple[tree.Expression, ...]:
        self.expect("(")
        found = []
        while not self.at(")"):
            found.append(self.expression())
            if not self.at(")"):
                self.expect(",")
        self.expect(")")
        return tuple(found)

    def _new(self) -> tree.Expression:
        name = self.next().text
        while self.take("."):
            name = self.next().text
        if self.at("<"):
            self.skip_generics()
        if self.at("["):
            return self._new_array()
        made: tree.Expression = tree.New(name, self._arguments())
        if self.at("{"):
            self.skip_braces()
            made = tree.Unknown(f"new {name}")
        return made

    def _new_array(self) -> tree.Expression:
        sizes = []
        while self.take("["):
            if not self.at("]"):
                sizes.append(self.expression())
            self.expect("]")
        return self._array() if self.at("{") else tree.New("[]", tuple(sizes))

    def _array(self) -> tree.Array:
        self.expect("{")
        items = []
        while not self.at("}"):
            items.append(self.initializer())
            if not self.at("}"):
                self.expect(",")
        self.expect("}")
        return tree.Array(tuple(items))

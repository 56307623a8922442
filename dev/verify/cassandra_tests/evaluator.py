"""Values of Java expressions; calls that send CQL go to the Tester."""

from __future__ import annotations

import operator
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dev.verify.cassandra_tests import java_tree as tree
from dev.verify.cassandra_tests.java_values import (
    CONSTANTS,
    MADE,
    STATIC,
    TESTER,
    Builder,
    Long,
    NoValueError,
    java_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dev.verify.cassandra_tests.java_tree import Method
    from dev.verify.cassandra_tests.tester import Tester

Frame: TypeAlias = dict[str, object]

_BINARY: Mapping[str, Callable[[Any, Any], object]] = {
    "-": operator.sub,
    "*": operator.mul,
    "%": lambda left, right: left - right * _quotient(left, right),
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
}
_OF_TEXT: Mapping[str, Callable[..., object]] = {
    "length": len,
    "isEmpty": lambda text: not text,
    "equals": operator.eq,
    "replace": str.replace,
    "replaceAll": str.replace,
    "toUpperCase": lambda text, *_: text.upper(),
    "toLowerCase": lambda text, *_: text.lower(),
    "trim": str.strip,
    "contains": operator.contains,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "repeat": operator.mul,
    "concat": operator.add,
    "toString": str,
    "getBytes": str.encode,
    "charAt": operator.getitem,
    "substring": lambda text, start, end=None: text[start:end],
}
_OF_LIST: Mapping[str, Callable[..., object]] = {
    "size": len,
    "get": operator.getitem,
    "isEmpty": lambda items: not items,
    "add": lambda items, *item: items.append(item[-1]),
    "contains": operator.contains,
    "toArray": lambda items, *_: items,
}
_OF_BYTES: Mapping[str, Callable[..., object]] = {"duplicate": bytes, "getBytes": bytes, "array": bytes}
_OF_ANY: Mapping[str, Callable[..., object]] = {"toString": java_text, "equals": operator.eq}


@dataclass(frozen=True, slots=True)
class Function:
    """A lambda."""

    # The names of the parameters.
    parameters: tuple[str, ...]
    # The statements.
    body: tree.Block
    # The variables around it.
    frame: Frame


def _quotient(left: Any, right: Any) -> Any:  # noqa: ANN401 - numbers
    if isinstance(left, int) and isinstance(right, int):
        return int(abs(left) // abs(right)) * (1 if (left < 0) == (right < 0) else -1)
    return left / right


class Evaluator:
    """`fields` are of the class, `variables` of the method that runs."""

    def __init__(self, tester: Tester) -> None:
        self.tester = tester
        self.fields: Frame = {}
        self.variables: Frame = {}

    @abstractmethod
    def find_method(self, name: str, count: int) -> Method | None:
        """Return a method of the test's own classes."""

    @abstractmethod
    def run_method(self, method: Method, arguments: Sequence[object]) -> object:
        """Run a method of the test's own classes."""

    @abstractmethod
    def run_function(self, function: Function, arguments: Sequence[object]) -> object:
        """Run a lambda."""

    def value_or_none(self, expression: tree.Expression) -> object:
        try:
            return self.value(expression)
        except NoValueError:
            return None

    def value(self, expression: tree.Expression) -> object:
        """Raises NoValueError. Statements on the way have been listed."""
        try:
            return self._value(expression)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise NoValueError(f"{type(expression).__name__.lower()}: {error}") from error

    def _value(self, expression: tree.Expression) -> object:  # noqa: C901, PLR0911, PLR0912 - one branch for each kind
        match expression:
            case tree.Literal():
                return expression.value
            case tree.Name():
                return self._variable(expression.name)
            case tree.Field():
                return self._field(expression)
            case tree.Call():
                return self._call_of(expression)
            case tree.New():
                return self._new(expression)
            case tree.Array():
                return [self.value(item) for item in expression.items]
            case tree.Index():
                target: Any = self.value(expression.target)
                return target[self.value(expression.index)]
            case tree.Cast():
                return self._cast(expression.name, self.value(expression.value))
            case tree.Unary():
                return self._unary(expression)
            case tree.Binary():
                return self._binary(expression)
            case tree.Conditional():
                return self.value(expression.then if self.value(expression.condition) else expression.otherwise)
            case tree.Assign():
                return self._assign(expression)
            case tree.Lambda():
                return Function(expression.parameters, expression.body, self.variables)
        raise NoValueError(f"{expression.text}")

    def _variable(self, name: str) -> object:
        for frame in (self.variables, self.fields, self.tester.names()):
            if name in frame:
                value = frame[name]
                if isinstance(value, NoValueError):
                    raise value
                return value
        raise NoValueError(f"the name {name}")

    def _field(self, expression: tree.Field) -> object:
        match expression.target:
            case tree.Name(name) if (name, expression.name) in CONSTANTS:
                return CONSTANTS[name, expression.name]
            case tree.Name("this" | "CQLTester"):
                return self._variable(expression.name)
            case tree.Name(name) if name not in self.variables and name not in self.fields and name[0].isupper():
                return self._variable(expression.name)
        target = self.value(expression.target)
        if expression.name == "length" and isinstance(target, list):
            return len(target)
        raise NoValueError(f"the field {expression.name}")

    def _call_of(self, call: tree.Call) -> object:
        if call.target is None or call.target in (tree.Name("this"), tree.Name("super"), tree.Name("CQLTester")):
            return self._call_own(call)
        if isinstance(call.target, tree.Name) and call.target.name not in {**self.variables, **self.fields}:
            return self._call_static(call.target.name, call)
        return self._call_method(self.value(call.target), call)

    def _call_own(self, call: tree.Call) -> object:
        arguments = self._arguments(call)
        if self.tester.knows(call.name):
            return self.tester.call(call.name, arguments)
        method = self.find_method(call.name, len(arguments))
        if method is not None:
            return self.run_method(method, arguments)
        if call.name in TESTER:
            return TESTER[call.name](*self._known(arguments))
        self._run_functions(arguments)
        raise NoValueError(f"the answer of {call.name}")

    def _call_static(self, of: str, call: tree.Call) -> object:
        arguments = self._arguments(call)
        if (of, call.name) in STATIC:
            return STATIC[of, call.name](*self._known(arguments))
        method = self.find_method(call.name, len(arguments)) if of[0].isupper() else None
        if method is not None:
            return self.run_method(method, arguments)
        if self.tester.knows(call.name) and of[0].isupper():
            return self.tester.call(call.name, arguments)
        self._run_functions(arguments)
        raise NoValueError(f"the answer of {of}.{call.name}")

    def _call_method(self, target: object, call: tree.Call) -> object:  # noqa: PLR0911 - one for each type
        arguments = self._known(self._arguments(call))
        match target:
            case Builder() if call.name == "append":
                target.text += java_text(arguments[0])
                return target
            case Builder() if call.name == "toString":
                return target.text
            case Function():
                return self.run_function(target, arguments)
            case str() if call.name in _OF_TEXT:
                return _OF_TEXT[call.name](target, *arguments)
            case list() if call.name == "forEach" and isinstance(arguments[0], Function):
                for item in target:
                    self.run_function(arguments[0], (item,))
                return None
            case list() if call.name in _OF_LIST:
                return _OF_LIST[call.name](target, *arguments)
            case bytes() if call.name in _OF_BYTES:
                return _OF_BYTES[call.name](target)
            case _ if call.name in _OF_ANY:
                return _OF_ANY[call.name](target, *arguments)
        raise NoValueError(f"the answer of {call.name}")

    def _arguments(self, call: tree.Call) -> list[object]:
        """The values; a NoValueError in place of one that is not known."""
        found: list[object] = []
        for argument in call.arguments:
            try:
                found.append(self.value(argument))
            except NoValueError as error:
                found.append(error)
        return found

    @staticmethod
    def _known(arguments: list[object]) -> list[object]:
        for argument in arguments:
            if isinstance(argument, NoValueError):
                raise argument
        return arguments

    def _run_functions(self, arguments: list[object]) -> None:
        """Code that CQLTester is given to run is run."""
        for argument in arguments:
            if isinstance(argument, Function) and not argument.parameters:
                self.run_function(argument, ())

    def _new(self, expression: tree.New) -> object:
        if expression.name not in MADE:
            raise NoValueError(f"new {expression.name}")
        return MADE[expression.name](*(self.value(argument) for argument in expression.arguments))

    @staticmethod
    def _cast(name: str, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            if name in {"long", "Long"}:
                return Long(value)
            if name in {"float", "double"}:
                return float(value)
        return int(value) if isinstance(value, float) and name in {"int", "long", "short", "byte"} else value

    def _unary(self, expression: tree.Unary) -> object:
        if expression.operator in {"++", "--"}:
            return self._assign(tree.Assign(expression.value, expression.operator[0] + "=", tree.Literal(1)))
        value: Any = self.value(expression.value)
        match expression.operator:
            case "!":
                return not value
            case "-":
                return Long(-value) if isinstance(value, Long) else -value
            case "~":
                return ~value
        return value

    def _binary(self, expression: tree.Binary) -> object:
        left: Any = self.value(expression.left)
        if expression.operator == "&&":
            return left and self.value(expression.right)
        if expression.operator == "||":
            return left or self.value(expression.right)
        return self._joined(expression.operator, left, self.value(expression.right))

    @staticmethod
    def _joined(sign: str, left: Any, right: Any) -> object:  # noqa: ANN401 - of any type
        if sign == "+" and (isinstance(left, str | Builder) or isinstance(right, str | Builder)):
            return java_text(left) + java_text(right)
        is_long = isinstance(left, Long) or isinstance(right, Long)
        result: object = left + right if sign == "+" else None
        if sign == "/":
            result = _quotient(left, right)
        elif sign != "+":
            result = _BINARY[sign](left, right)
        return Long(result) if is_long and isinstance(result, int) and not isinstance(result, bool) else result

    def _assign(self, expression: tree.Assign) -> object:
        value = self.value(expression.value)
        match expression.target:
            case tree.Index():
                target: Any = self.value(expression.target.target)
                target[self.value(expression.target.index)] = value
                return value
            case tree.Name(name) | tree.Field(tree.Name("this"), name):
                if expression.operator != "=":
                    value = self._joined(expression.operator[:-1], self._variable(name), value)
                frame = self.fields if name in self.fields and name not in self.variables else self.variables
                frame[name] = value
                return value
        raise NoValueError("an assignment")

"""The parts of a Java source that the tests' statements depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    # Its value in Python.
    value: object


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a class."""

    # The name as written.
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object or a class."""

    # The object or the class.
    target: Expression
    # The name of the field.
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a method."""

    # The object or the class; None for a method of the class itself.
    target: Expression | None
    # The name of the method.
    name: str
    # The arguments, in order.
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class New:
    """A new object."""

    # The name of the class.
    name: str
    # The arguments of the constructor.
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array with its items."""

    # The items, in order.
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """An item of an array."""

    # The array.
    target: Expression
    # The number of the item.
    index: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as another type."""

    # The name of the type.
    name: str
    # The value.
    value: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    """An operator and its operand."""

    # The operator as written.
    operator: str
    # The operand.
    value: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two operands."""

    # The operator as written.
    operator: str
    # The left operand.
    left: Expression
    # The right operand.
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    """An expression with `?` and `:`."""

    # The condition.
    condition: Expression
    # The value if the condition is true.
    then: Expression
    # The value if it is false.
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Assign:
    """An assignment."""

    # The variable, field or item.
    target: Expression
    # The operator as written, such as `=` or `+=`.
    operator: str
    # The right side.
    value: Expression


@dataclass(frozen=True, slots=True)
class Lambda:
    """A lambda."""

    # The names of the parameters.
    parameters: tuple[str, ...]
    # The statements.
    body: Block


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression of a kind that has no value here."""

    # The text as written.
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in braces."""

    # The statements, in order.
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Declare:
    """A declaration of a variable or field."""

    # The name.
    name: str
    # The first value; None if there is none.
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression as a statement."""

    # The expression.
    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    """An `if`."""

    # The condition.
    condition: Expression
    # The statement if the condition is true.
    then: Statement
    # The statement after `else`; None if there is none.
    otherwise: Statement | None


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` of three parts, or a `while`."""

    # The statements before the first round.
    first: tuple[Statement, ...]
    # The condition of a next round.
    condition: Expression
    # The expressions after each round.
    updates: tuple[Expression, ...]
    # The statement of a round.
    body: Statement


@dataclass(frozen=True, slots=True)
class ForEach:
    """A `for` over items."""

    # The variable of an item.
    name: str
    # The array or collection.
    items: Expression
    # The statement for each item.
    body: Statement


@dataclass(frozen=True, slots=True)
class Try:
    """A `try`, without its `catch`."""

    # The resources, and the statements.
    body: Block
    # The statements of `finally`.
    last: Block


@dataclass(frozen=True, slots=True)
class Return:
    """A `return`."""

    # The value; None if there is none.
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Jump:
    """A statement that leaves a block."""

    # break, continue or throw.
    kind: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement of a kind that is not run."""

    # The text as written.
    text: str


Expression: TypeAlias = (
    Literal
    | Name
    | Field
    | Call
    | New
    | Array
    | Index
    | Cast
    | Unary
    | Binary
    | Conditional
    | Assign
    | Lambda
    | Unknown
)
Statement: TypeAlias = Block | Declare | Evaluate | If | Loop | ForEach | Try | Return | Jump | Unsupported


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a class."""

    # The name.
    name: str
    # The names of the annotations.
    annotations: frozenset[str]
    # The names of the parameters.
    parameters: tuple[str, ...]
    # Whether the last parameter takes any number of arguments.
    has_varargs: bool
    # The statements; None for a method that could not be parsed.
    body: Block | None
    # Why it could not be parsed; "" if it was.
    problem: str = ""


@dataclass(slots=True)
class JavaClass:
    """A class."""

    # The name.
    name: str
    # The name of the class that it extends; "" for none.
    parent: str = ""
    # The methods, in the order of the source.
    methods: list[Method] = field(default_factory=list)
    # The fields with a value, in the order of the source.
    fields: list[Declare] = field(default_factory=list)

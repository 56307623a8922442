"""The parts of a Java source that the tests' statements depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    value: object


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    target: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """`target` is None for a method of the class itself."""

    target: Expression | None
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class New:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Index:
    target: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Assign:
    target: Expression
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Lambda:
    parameters: tuple[str, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression of a kind that has no value here."""

    text: str


@dataclass(frozen=True, slots=True)
class Block:
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Declare:
    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Evaluate:
    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Statement
    otherwise: Statement | None


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` of three parts, or a `while`."""

    first: tuple[Statement, ...]
    condition: Expression
    updates: tuple[Expression, ...]
    body: Statement


@dataclass(frozen=True, slots=True)
class ForEach:
    name: str
    items: Expression
    body: Statement


@dataclass(frozen=True, slots=True)
class Try:
    body: Block
    last: Block


@dataclass(frozen=True, slots=True)
class Return:
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Jump:
    """`kind` is break, continue or throw."""

    kind: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement of a kind that is not run."""

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
    """`body` is None, and `problem` says why, for a method that could not be parsed."""

    name: str
    annotations: frozenset[str]
    parameters: tuple[str, ...]
    has_varargs: bool
    body: Block | None
    problem: str = ""


@dataclass(slots=True)
class JavaClass:
    """`fields` are those with a value, in the order of the source."""

    name: str
    parent: str = ""
    methods: list[Method] = field(default_factory=list)
    fields: list[Declare] = field(default_factory=list)

"""The columns of a record on their way through the steps, and what steps share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages.avro.schemas import Named, definition
from transformer.errors import StepError
from transformer.steps.converts import Convert, Lifted

if TYPE_CHECKING:
    from cdc_common.messages.avro.schemas import Tree
    from transformer.steps.converts import ConvertValue

_OF_THE_OLD_TYPE = ("type", "default", "pii", "cqlType", "sqlType")


class Column(NamedTuple):
    """A field of the target."""

    # The field's Avro schema, as JSON.
    field: dict[str, Any]
    # The index of the source's field that it is made from.
    source: int
    # The conversions of its values, in order.
    converts: tuple[Convert, ...] = ()
    # Whether a step masks it.
    is_masked: bool = False
    # Whether the source's field is personal, whatever the column is called and made into by now.
    is_personal: bool = False

    @property
    def name(self) -> str:
        name: str = self.field["name"]
        return name

    def with_type(self, tree: Tree, convert: Convert, **properties: object) -> Column:
        """Return the column with another type. Of defaults, only null is kept."""
        kept = {key: value for key, value in self.field.items() if key not in _OF_THE_OLD_TYPE}
        made = {**kept, "type": tree, **({"default": None} if is_nullable(tree) else {}), **properties}
        return self._replace(field=made, converts=(*self.converts, convert))


class Record(NamedTuple):
    """A record after the steps."""

    # Its fields, in order.
    columns: list[Column]
    # The record's documentation.
    doc: str | None

    @property
    def names(self) -> str:
        """Return the columns' names, for error messages."""
        return ", ".join(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def replace(self, name: str, *columns: Column) -> Record:
        """Return the record with `columns` in place of the column `name`."""
        made = [new for column in self.columns for new in (columns if column.name == name else (column,))]
        return self._replace(columns=made)


class Context(NamedTuple):
    """The context of a step, besides the record."""

    # The step's number, from 1.
    number: int
    # The named types of the source's schema.
    named: Named
    # The columns of the key.
    keys: frozenset[str] = frozenset()
    # The columns that the catalogue marks as personal.
    pii: frozenset[str] = frozenset()
    # Whether a column that a step names has to be in the record.
    must_exist: bool = True

    def error(self, reason: str) -> StepError:
        return StepError(self.number, reason)

    def column(self, record: Record, name: str) -> Column | None:
        """None if it is missing and need not be there. StepError."""
        found = record.find(name)
        if found is None and self.must_exist:
            raise self.error(f"there is no column {name}; the columns are {record.names}")
        return found


def is_nullable(tree: Tree) -> bool:
    return isinstance(tree, list) and "null" in tree


def value_type(tree: Tree, named: Named) -> str | None:
    """The type of the values that are not null; None for a union of several."""
    branches = [branch for branch in tree if branch != "null"] if isinstance(tree, list) else [tree]
    return definition(branches[0], named)["type"] if len(branches) == 1 else None


def lift(tree: Tree, convert: ConvertValue, made: Tree, *, may_be_null: bool = False) -> tuple[Tree, Convert]:
    """The type and the conversion of values of a type that may be null. Of a union of several, the branch's number is
    part of the value. may_be_null: `convert` may return None.
    """
    if not isinstance(tree, list):
        if not may_be_null:
            return made, Lifted(convert, "whole")
        return ["null", made], Lifted(convert, "nullable")
    if "null" not in tree and len(tree) != 1:
        return made, Lifted(convert, "whole")
    null = tree.index("null") if "null" in tree else -1
    return ["null", made], Lifted(convert, "branches", null, is_single=len(tree) - (null >= 0) == 1)

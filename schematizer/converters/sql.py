"""Converters of CREATE TABLE statements of MySQL and PostgreSQL, parsed by sqlglot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from schematizer.converters.columns import NO_DEFAULT, Column, Table, convert_table
from schematizer.converters.converted import ConversionError
from schematizer.converters.sql_types import avro_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schematizer.converters.converted import Converted

_NEVER_NULL = (exp.NotNullColumnConstraint, exp.PrimaryKeyColumnConstraint)
_SERIAL = (exp.DType.SERIAL, exp.DType.SMALLSERIAL, exp.DType.BIGSERIAL)


class SqlConverter:
    """`dialect`: sqlglot's name. The text has one CREATE TABLE; PostgreSQL's COMMENT ON may follow."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def convert(self, text: str, namespace: str) -> Converted:
        return convert_table(self.read(text), namespace)

    def read(self, text: str) -> Table:
        """The table that the statements describe."""
        try:
            return self._read(
                [statement for statement in sqlglot.parse(text, read=self._dialect) if statement is not None]
            )
        except SqlglotError as error:
            raise ConversionError(f"it is not {self._dialect}: {str(error).splitlines()[0]}") from error
        except RecursionError:
            raise ConversionError("it is nested too deeply") from None

    def _read(self, statements: Sequence[exp.Expr]) -> Table:
        comments = [statement for statement in statements if isinstance(statement, exp.Comment)]
        tables = [
            statement for statement in statements if isinstance(statement, exp.Create) and statement.kind == "TABLE"
        ]
        others = len(statements) - len(comments) - len(tables)
        if len(tables) != 1 or others:
            raise ConversionError(f"{len(tables)} CREATE TABLE and {others} other statements, not one and none")
        return _commented(self._table(tables[0]), comments)

    def _table(self, create: exp.Create) -> Table:
        schema = create.this
        if not isinstance(schema, exp.Schema):
            raise ConversionError("the CREATE TABLE names no columns")
        columns = [
            self._column(expression) for expression in schema.expressions if isinstance(expression, exp.ColumnDef)
        ]
        key = [
            expression.name
            for expression in schema.expressions
            if isinstance(expression, exp.ColumnDef) and _has(expression, exp.PrimaryKeyColumnConstraint)
        ]
        for part in schema.expressions:
            found = part if isinstance(part, exp.PrimaryKey) else part.find(exp.PrimaryKey)
            if found is not None:
                key = [_column_name(expression) for expression in found.expressions]
        return Table(schema.this.name, columns, key, _comment(create.args.get("properties")))

    def _column(self, column: exp.ColumnDef) -> Column:
        kind = column.kind
        if not isinstance(kind, exp.DataType):
            raise ConversionError(f"the column {column.name} has no type")
        avro = avro_type(kind, self._dialect, column.name)
        never_null = any(_has(column, constraint) for constraint in _NEVER_NULL) or kind.this in _SERIAL
        return Column(
            column.name,
            avro,
            kind.sql(self._dialect).lower(),
            not never_null,
            _default(column, avro),
            _comment(column),
        )


def _has(column: exp.ColumnDef, kind: type[exp.Expression]) -> bool:
    """NULL is a NotNullColumnConstraint that allows it."""
    found = [constraint.args.get("kind") for constraint in column.constraints]
    return any(isinstance(constraint, kind) and not constraint.args.get("allow_null") for constraint in found)


def _comment(node: exp.Expression | None) -> str | None:
    """The comment in a column's definition, or in a table's properties."""
    found: exp.Expression | None = None
    if isinstance(node, exp.ColumnDef):
        kinds = [constraint.args.get("kind") for constraint in node.constraints]
        found = next((kind for kind in kinds if isinstance(kind, exp.CommentColumnConstraint)), None)
    elif node is not None:
        found = node.find(exp.SchemaCommentProperty)
    return str(found.this.name) if found is not None else None


def _commented(table: Table, comments: Sequence[exp.Comment]) -> Table:
    """The table with what each COMMENT ON says of it, or of one of its columns."""
    doc, docs = table.doc, {column.name: column.doc for column in table.columns}
    for comment in comments:
        target, text = comment.this, comment.expression.name if comment.expression else None
        if comment.args.get("kind") == "TABLE" and target.name == table.name:
            doc = text
        elif comment.args.get("kind") != "COLUMN" or target.table != table.name:
            raise ConversionError(f"a comment on something other than the table {table.name} and its columns")
        elif target.name in docs:
            docs[target.name] = text
        else:
            raise ConversionError(f"a comment on {table.name}.{target.name}, a column that the table does not have")
    return replace(table, doc=doc, columns=[replace(column, doc=docs[column.name]) for column in table.columns])


def _column_name(node: exp.Expression) -> str:
    """The name in a part of a key, which may have an order."""
    return str(node.this.name if isinstance(node, exp.Ordered) else node.name)


def _default(column: exp.ColumnDef, avro: Any) -> Any:  # noqa: ANN401 - JSON
    """The default value, if it is a literal: the value of an expression is not known here."""
    for constraint in column.constraints:
        kind = constraint.args.get("kind")
        if isinstance(kind, exp.DefaultColumnConstraint):
            return _literal(kind.this, avro)
    return NO_DEFAULT


def _literal(value: exp.Expression, avro: Any) -> Any:  # noqa: ANN401 - JSON; one for each kind of literal
    if isinstance(value, exp.Cast):
        return _literal(value.this, avro)
    if isinstance(value, exp.Boolean) and avro == "boolean":
        return bool(value.this)
    if isinstance(value, exp.Literal) and avro == "string" and value.is_string:
        return value.name
    negative = isinstance(value, exp.Neg)
    number = value.this if negative else value
    if not isinstance(number, exp.Literal) or avro not in ("int", "long", "float", "double"):
        return NO_DEFAULT
    try:
        plain = int(number.name) if avro in ("int", "long") else float(number.name)
    except ValueError:
        return NO_DEFAULT
    return -plain if negative else plain

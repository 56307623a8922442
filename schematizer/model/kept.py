"""The limits of a text and a number in every database: a backup of one is restored into another.

SQLite takes texts that are longer than their columns, and U+0000. PostgreSQL refuses both. Numbers of more than 64 bits
fail in Python, before SQLite sees them. All of these are a DataError here, as PostgreSQL's own refusals are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import String, event, inspect
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.engine import ExceptionContext


@event.listens_for(Session, "before_flush")
def _check_texts(session: Session, _context: object, _instances: object) -> None:
    for row in (*session.new, *session.dirty):
        for attribute in inspect(row).mapper.column_attrs:
            _check_text(attribute.columns[0], getattr(row, attribute.key))


def _check_text(column: Any, value: object) -> None:  # noqa: ANN401 - of SQLAlchemy
    if not isinstance(value, str) or not isinstance(column.type, String):
        return
    if column.type.length is not None and len(value) > column.type.length:
        raise _unkept(f"{column.table.name}.{column.name} holds {column.type.length} characters, not {len(value)}")
    if "\0" in value:
        raise _unkept(f"{column.table.name}.{column.name} does not hold the character U+0000")


def refusal_of(error: DataError) -> str:
    """Why it is not kept, in our words: a database's own may name its tables and types."""
    return str(error.orig) if isinstance(error.orig, _UnkeptError) else "a text or a number is too large"


class _UnkeptError(ValueError):
    """The reason why a value is not kept, for people."""


def _unkept(problem: str) -> DataError:
    return DataError(None, None, _UnkeptError(problem))


def refuse_large_numbers(engine: Engine) -> None:
    """Of an engine for SQLite."""
    event.listen(engine, "handle_error", _check_error)


def _check_error(context: ExceptionContext) -> None:
    if isinstance(context.original_exception, OverflowError):
        raise _unkept("a number has more than 64 bits")

"""The base of all tables: their metadata, and how a time is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Enum, MetaData
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import Text, TypeDecorator, TypeEngine

if TYPE_CHECKING:
    from enum import StrEnum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

LongText: TypeEngine[str] = Text().with_variant(LONGTEXT, "mysql", "mariadb")


class Time(TypeDecorator[datetime]):
    """A time as microseconds since 1970 (UTC): the same, and in the same order, in every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> int | None:  # noqa: ANN401, ARG002 - SQLAlchemy's
        return None if value is None else microseconds(value)

    def process_result_value(self, value: int | None, dialect: Any) -> datetime | None:  # noqa: ANN401, ARG002 - as above
        return None if value is None else _EPOCH + value * _MICROSECOND


def words(kind: type[StrEnum], length: int) -> Enum:
    """A column of an enum's values, which the database sees as text: a new value needs no migration."""
    return Enum(kind, native_enum=False, length=length, values_callable=lambda values: [one.value for one in values])


class Base(DeclarativeBase):
    """The base of every mapped table."""

    metadata = MetaData()
    type_annotation_map = {datetime: Time}  # noqa: RUF012 - SQLAlchemy reads it from the class


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970, as times are stored. A time without a zone is UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def now() -> datetime:
    return datetime.now(UTC)

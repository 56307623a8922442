"""The type of a column in each warehouse, from the Avro type of its field. docs/guides/warehouse.md has the table.

A column holds every value of its field, or refuses it: none is rounded or cut. Text that stands for a number stays
text, as the topic has it: other forms of a topic (docs/reference/data-types.md) give numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from cdc_common.messages.avro.forms import Form

_NESTED = frozenset({"record", "map", "array", "union"})
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)|NUMERIC\((\d+), (\d+)\)")


class Limits(NamedTuple):
    """Values that a type holds: from the first one to before the end."""

    first: int
    end: int

    def in_units_of(self, micros: int) -> Limits:
        """The same limits of µs in units of so many µs."""
        return Limits(-(-self.first // micros), -(-self.end // micros))


class Dialect(NamedTuple):
    """The types of a kind of warehouse."""

    # The type's name by Avro's primitive or logical type.
    plain: Mapping[str, str]
    # The name of its exact numbers with a precision and a scale.
    decimal: str
    # The largest precision, in digits.
    max_precision: int
    # Whether an array of plain values has a type of its own, or is JSON.
    has_lists: bool
    # Whether decimals are staged as text.
    stages_decimals_as_text: bool
    # The types that become wider, (type before, type after), and how a value `{}` does; empty if it does by itself.
    widenings: Mapping[tuple[str, str], str]
    # Whether texts may have the character U+0000.
    holds_nul: bool
    # The dates that it holds, in days since 1970.
    days: Limits
    # The timestamps that it holds, in µs since 1970.
    micros: Limits
    # How a table is stored whose rows are updated in place; empty if they are deleted and inserted instead.
    updated_storage: str = ""
    # How every table is stored.
    storage: str = ""
    # The types of the warehouse's own columns that differ from PostgreSQL's.
    own_types: Mapping[str, str] = MappingProxyType({})
    # The time of the transaction.
    now: str = "now()"
    # Whether the types of columns can be altered, or columns are replaced.
    alters_types: bool = True
    # The form of the objects that it copies; empty if it takes rows from the loader.
    objects: Literal["", "csv", "parquet"] = ""
    # How texts of objects become values of a type, `{}` being the text. Others are cast.
    parsed: Mapping[str, str] = MappingProxyType({})
    # The size of the largest text in bytes; 0 if there is no limit that matters.
    text_bytes: int = 0
    # Whether each table has its state in a table of its own, which is locked to change it.
    state_per_table: bool = False

    def own_type(self, kind: str) -> str:
        """A type of PostgreSQL, as the warehouse has it."""
        return self.own_types.get(kind, kind)


_DAY = 86_400_000_000
_COMMON = {
    "null": "TEXT",
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "string": "TEXT",
    "enum": "TEXT",
    "uuid": "UUID",
    "json": "JSON",
    "date": "DATE",
    "time-millis": "TIME",
    "time-micros": "TIME",
    "timestamp-millis": "TIMESTAMPTZ",
    "timestamp-micros": "TIMESTAMPTZ",
    # Neither warehouse has nanoseconds since 1970 with a time zone.
    "timestamp-nanos": "BIGINT",
    "local-timestamp-millis": "TIMESTAMP",
    "local-timestamp-micros": "TIMESTAMP",
    "local-timestamp-nanos": "BIGINT",
}
POSTGRESQL = Dialect(
    {**_COMMON, "float": "REAL", "double": "DOUBLE PRECISION", "bytes": "BYTEA", "fixed": "BYTEA"},
    "NUMERIC",
    1000,
    has_lists=False,
    stages_decimals_as_text=True,
    widenings={
        ("INTEGER", "BIGINT"): "",
        ("INTEGER", "DOUBLE PRECISION"): "",
        ("REAL", "DOUBLE PRECISION"): "",
        ("TEXT", "BYTEA"): "convert_to({}, 'UTF8')",
    },
    holds_nul=False,
    days=Limits(-2_440_588, 2_145_031_949),  # from 4713-11-24 BC to 5874897-12-31
    micros=Limits(-2_440_588 * _DAY, 106_751_983 * _DAY),  # from the same day to 294276-12-31
    # A new version of a row fits into its page, so that the index does not change.
    updated_storage=" WITH (fillfactor = 50)",
)
DUCKDB = Dialect(
    {**_COMMON, "float": "FLOAT", "double": "DOUBLE", "bytes": "BLOB", "fixed": "BLOB"},
    "DECIMAL",
    38,
    has_lists=True,
    stages_decimals_as_text=False,
    widenings={
        ("INTEGER", "BIGINT"): "",
        ("INTEGER", "DOUBLE"): "",
        ("FLOAT", "DOUBLE"): "",
        ("TEXT", "BLOB"): "encode({})",
    },
    holds_nul=True,
    days=Limits(-(2**31) + 2, 2**31 - 1),  # the others are infinite
    micros=Limits(-9_223_372_022_400_000_000, 2**63 - 1),
)

_FOUR_DIGITS = Limits(-719_162, 2_932_897)  # from year 1 to year 9999: the documents promise no others
_VARCHAR = "VARCHAR(65535)"
REDSHIFT = Dialect(
    {
        **_COMMON,
        **dict.fromkeys(("null", "string", "enum"), _VARCHAR),
        "uuid": "VARCHAR(36)",
        "json": "SUPER",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        "bytes": "VARBYTE",
        "fixed": "VARBYTE",
    },
    "DECIMAL",
    38,
    has_lists=False,
    stages_decimals_as_text=False,
    widenings={
        ("INTEGER", "BIGINT"): "",
        ("INTEGER", "DOUBLE PRECISION"): "",
        ("REAL", "DOUBLE PRECISION"): "",
        (_VARCHAR, "VARBYTE"): "TO_VARBYTE({}, 'utf8')",
    },
    holds_nul=False,
    days=_FOUR_DIGITS,
    micros=Limits(_FOUR_DIGITS.first * _DAY, _FOUR_DIGITS.end * _DAY),
    storage=" DISTSTYLE KEY DISTKEY (_key) SORTKEY (_key)",
    own_types={"UUID": "VARCHAR(36)", "TEXT": _VARCHAR},
    now="GETDATE()",  # now() is a function of the leader node alone
    alters_types=False,
    objects="parquet",
    parsed={"SUPER": "JSON_PARSE({})", "VARBYTE": "TO_VARBYTE({}, 'hex')"},
    text_bytes=65_535,
    state_per_table=True,
)


def sql_type(form: Form, dialect: Dialect, *, is_json: bool = False) -> str:
    """The type of a field. is_json: of a text that is JSON. ValueError for one without a type, with the reason."""
    form = without_null(form)
    if form.kind == "array" and dialect.has_lists and not is_nested(form.inner[0]):
        return f"{sql_type(form.inner[0], dialect)}[]"
    if form.kind in _NESTED:
        return dialect.plain["json"]
    precision, scale = form.decimal
    if precision:
        if precision > dialect.max_precision:
            raise ValueError(f"a decimal of {precision} digits, and the warehouse has {dialect.max_precision}")
        return f"{dialect.decimal}({precision}, {scale})"
    return dialect.plain["json" if is_json else form.logical or form.kind]


def staged_type(kind: str, dialect: Dialect) -> str:
    """The type of a column in the staging."""
    return "TEXT" if dialect.stages_decimals_as_text and kind.startswith(dialect.decimal) else kind


def without_null(form: Form) -> Form:
    """The type of the values that are not null."""
    if form.kind == "optional":
        return form.inner[1 - form.size]
    return form.inner[0] if form.kind == "union" and len(form.inner) == 1 else form


def is_nested(form: Form) -> bool:
    """Whether the type has types in it."""
    return without_null(form).kind in _NESTED


def wider_type(known: str, wanted: str, dialect: Dialect) -> str | None:
    """The type that holds the values of both; None if there is none."""
    if known == wanted or (wanted, known) in dialect.widenings:
        return known
    if (known, wanted) in dialect.widenings:
        return wanted
    before, now = _DECIMAL.fullmatch(known), _DECIMAL.fullmatch(wanted)
    if before is None or now is None:
        return None
    (digits, scale), (digits_now, scale_now) = _digits(before), _digits(now)
    whole, most = max(digits - scale, digits_now - scale_now), max(scale, scale_now)
    return f"{dialect.decimal}({whole + most}, {most})" if whole + most <= dialect.max_precision else None


def _digits(found: re.Match[str]) -> tuple[int, int]:
    precision, scale = (text for text in found.groups() if text is not None)
    return int(precision), int(scale)

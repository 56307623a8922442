"""`cassandra-materializer check --for CONSUMER TABLE`: the columns of a table that a consumer will not take.

The rules are those that the tests of consumers have found (tests/servers/consumers, docs/guides/consumers.md); those
of Iceberg are the limits of its types, which no sink was tried with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from cassandra_storage.formats.types.cql_types import quoted_if_needed, type_text
from cassandra_storage.formats.types.marshal import (
    CqlType,
    MapType,
    NativeType,
    TupleType,
    UserType,
    all_types,
)
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import is_hard_collection
from cdc_common.messages.tables import from_json
from materializer.planning.table_forms import table_forms
from materializer.planning.table_schemas import read_table_schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.avro.type_forms import TypeForms
    from materializer.settings import Settings

Consumer: TypeAlias = Literal["jdbc", "flink", "clickhouse", "spark", "iceberg"]
CONSUMERS: tuple[Consumer, ...] = get_args(Consumer)
_RECORD_STOPS = "a record stops the sink's task"


class Finding(NamedTuple):
    """A column, or a whole table, that a consumer does not take as it is."""

    # The column's name; empty for the whole table.
    column: str
    # What the consumer does not take.
    problem: str
    # The setting that changes the form.
    fix: str
    # Whether the consumer does not take it at all.
    is_refused: bool = True


class Rule(NamedTuple):
    """A limit of a consumer."""

    # The kind of type that it concerns.
    kind: str
    # The value of the kind's setting that it concerns.
    value: str
    # What the consumer does not take.
    problem: str
    # The setting that changes the form.
    fix: str
    # Whether the consumer does not take it at all.
    is_refused: bool = True


_RULES: dict[Consumer, tuple[Rule, ...]] = {
    "jdbc": (
        Rule(
            "decimals",
            "exact",
            "becomes a double, which rounds; a number of many digits stops the task",
            "decimals=string, or decimal(p,s) for the column",
        ),
        Rule("varints", "bytes", "becomes two's complement in a bytea", "varints=string", is_refused=False),
        Rule("durations", "record", _RECORD_STOPS, "durations=text"),
        Rule("user_types", "record", _RECORD_STOPS, "user_types=json, or columns"),
        Rule("maps", "native", "needs hstore if keys are text, and stops the task otherwise", "maps=json"),
        Rule(
            "collections",
            "native",
            "is an array that the sink does not take: it stops, or writes nonsense",
            "collections=json",
        ),
        Rule("out_of_range", "as_is", "a value that PostgreSQL lacks stops the task", "out_of_range=null", False),
    ),
    "flink": (
        Rule("decimals", "exact", "no built-in function makes a number of the record", "decimals=string", False),
        Rule("varints", "bytes", "can only be read as DECIMAL(38, 0) or bytes", "varints=string", False),
        Rule("out_of_range", "as_is", "a far date may be shown as no row", "out_of_range=null", False),
    ),
    "clickhouse": (
        Rule("decimals", "exact", "is a tuple of scale and bytes", "decimals=string", False),
        Rule("varints", "bytes", "is a string of bytes", "varints=string", False),
        Rule(
            "out_of_range",
            "as_is",
            "after the year 9999 a date stops the file, and a timestamp is read as another one",
            "out_of_range=null, for those outside the years 1 to 9999",
            is_refused=False,
        ),
    ),
    "spark": (
        Rule("decimals", "exact", "is a struct of scale and bytes", "decimals=string", is_refused=False),
        Rule("varints", "bytes", "is binary", "varints=string", is_refused=False),
        Rule("out_of_range", "as_is", "a far timestamp overflows in Spark", "out_of_range=null", is_refused=False),
    ),
    "iceberg": (
        Rule("decimals", "exact", "is a struct of scale and bytes", "decimals=string", is_refused=False),
        Rule("varints", "bytes", "is binary", "varints=string", is_refused=False),
        Rule("out_of_range", "as_is", "a far timestamp overflows in microseconds", "out_of_range=null", False),
    ),
}
_RELATIONAL: tuple[Consumer, ...] = ("jdbc", "flink")


def check_consumer(settings: Settings, consumer: Consumer, table: str, say: Callable[[str], None]) -> bool:
    """Print the findings; whether the consumer takes all columns. CdcError(SCHEMA_UNKNOWN) for an unknown table."""
    keyspace, _, name = table.partition(".")
    schemas = read_table_schemas(settings.kafka).for_table((keyspace, name))
    if not schemas:
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The tables topic holds no schema of {table}.",
            "Write the name as Cassandra has it. The publisher sends the schema of a table once its cdc is on.",
        )
    metadata = from_json(schemas[-1].json)
    forms = table_forms(settings.materializer, metadata)
    found = list(find_limits(consumer, metadata, forms, on_large_message=settings.materializer.on_large_message))
    for finding in sorted(found, key=lambda finding: not finding.is_refused):
        place = f"column {quoted_if_needed(finding.column)}" if finding.column else "the table"
        say(f"{'not taken' if finding.is_refused else 'limited'}: {place}: {finding.problem}. Helps: {finding.fix}.")
    is_taken = not any(finding.is_refused for finding in found)
    say(f"{consumer} takes {'all columns' if is_taken else 'not all columns'} of {table}.")
    return is_taken


def find_limits(
    consumer: Consumer, table: TableMetadata, forms: TypeForms, *, on_large_message: str = "stop"
) -> Iterator[Finding]:
    """The columns of a table in these forms that a consumer does not take, or takes with a limit."""
    for name, cql_type in _fields(table, forms):
        for rule in _RULES[consumer]:
            if getattr(forms, rule.kind) == rule.value and _is_of(cql_type, rule.kind, forms):
                yield Finding(name, f"{type_text(cql_type)} {rule.problem}", rule.fix, rule.is_refused)
    if consumer in _RELATIONAL and forms.static_rows == "include" and table.static_columns:
        problem = "a partition that has only static columns is a row with a null in its key, which stops the consumer"
        yield Finding("", problem, "static_rows=leave_out")
    if consumer == "flink" and on_large_message == "without_before":
        problem = "materializer.on_large_message = without_before sends a `u` without `before`, which stops Flink's job"
        yield Finding("", problem, "on_large_message = stop or dead_letter")


def _fields(table: TableMetadata, forms: TypeForms) -> Iterator[tuple[str, CqlType]]:
    """The columns and their parts that are fields, without those of a decimal(p,s)."""
    keys = {column.name for column in table.partition_key + table.clustering}
    for column in table.columns:
        parts = None if column.name in keys else forms.parts_of(column.type)
        if parts is not None:
            yield from ((f"{column.name}.{part}", of) for part, of in parts.items())
        elif forms.fixed_of(column.name, column.type) is None:
            yield column.name, column.type


def _is_of(cql_type: CqlType, kind: str, forms: TypeForms) -> bool:
    """Whether the column's values depend on the setting: not those within JSON, but of what makes it JSON."""
    parts = list(all_types(cql_type))
    if kind == "user_types":
        return any(isinstance(part, UserType | TupleType) for part in parts)
    if forms.is_json(cql_type):
        return False
    match kind:
        case "decimals" | "varints" | "durations":
            return NativeType(kind.removesuffix("s")) in parts
        case "maps":
            return any(isinstance(part, MapType) for part in parts)
        case "collections":
            return is_hard_collection(cql_type)
    return NativeType("date") in parts or NativeType("timestamp") in parts

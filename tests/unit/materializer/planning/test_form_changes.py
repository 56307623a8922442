"""A form is a part of a topic: another one is refused by name, also where Avro and the registry see no difference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import CqlType, ListType, NativeType, UserType
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal, TypeForms
from cdc_common.messages.tables import message_key, to_json
from materializer.planning.change_topics import ChangeTopics
from materializer.planning.plan import TableSchema
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.raw_builder import INT, TABLE, TEXT, column

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata

PLAIN = replace(TABLE, static_columns=(), regular_columns=())
PLACE = UserType("ks", "place", ("street", "zip"), (TEXT, TEXT), is_multi_cell=False)
STRING = DEFAULT_FORMS


def with_column(cql_type: CqlType) -> TableMetadata:
    return replace(PLAIN, regular_columns=(ColumnMetadata("x", cql_type, ColumnKind.REGULAR),))


def topics(registry: MemoryRegistry, forms: TypeForms, *tables: TableMetadata) -> list[str | None]:
    """As a driver finds them that has just started."""
    keys = [message_key(table) for table in tables]
    schemas = [TableSchema(key[:16], key[16:], to_json(table)) for key, table in zip(keys, tables, strict=True)]
    found = ChangeTopics("cdc", registry, lambda _topic: 3).find_or_create(schemas, forms)
    return [topic and topic.name for topic in found]


FIXED = EXACT._replace(fixed=(("x", FixedDecimal(10, 2)),))
CHANGES: list[tuple[CqlType, TypeForms, TypeForms, str]] = [
    # Avro reads bytes as a string: the registry allows it, and each reader would show other values.
    (NativeType("varint"), EXACT, STRING, "x was bytes, and would be string"),
    (NativeType("varint"), STRING, EXACT, "x was string, and would be bytes"),
    (NativeType("varint"), EXACT, EXACT._replace(varints="decimal"), "x was bytes, and would be decimal(38,0)"),
    # Avro's resolution does not look at scales.
    (
        NativeType("decimal"),
        FIXED,
        EXACT._replace(fixed=(("x", FixedDecimal(12, 4)),)),
        "x was decimal(10,2), and would be decimal(12,4)",
    ),
    (NativeType("decimal"), EXACT, STRING, "x was record, and would be string"),
    (NativeType("duration"), EXACT, STRING, "x was record, and would be string"),
    (
        ListType(NativeType("varint"), is_multi_cell=False),
        EXACT,
        STRING,
        "x was array of bytes, and would be array of string",
    ),
    (PLACE, EXACT, STRING, "x was record, and would be string"),
    (PLACE, STRING, STRING._replace(user_types="columns"), "x was one field, and would be columns"),
    (PLACE, STRING._replace(user_types="columns"), STRING, "x was columns, and would be one field"),
    (
        UserType("ks", "worth", ("total",), (NativeType("decimal"),), is_multi_cell=True),
        STRING._replace(user_types="columns"),
        STRING._replace(user_types="columns", decimals="double"),
        "x.total was string, and would be double",
    ),
]


@pytest.mark.parametrize(("cql_type", "before", "after", "problem"), CHANGES)
def test_another_form_of_a_running_topic_is_refused(
    cql_type: CqlType, before: TypeForms, after: TypeForms, problem: str
) -> None:
    registry, table = MemoryRegistry(), with_column(cql_type)
    assert topics(registry, before, table) == ["cdc.shop.orders"]
    with pytest.raises(CdcError) as error:
        topics(registry, after, table)
    assert error.value.code is Code.FORM_CHANGED
    assert problem in error.value.problem
    assert len(registry.subjects) == 2
    # An ALTER beside it changes nothing about that.
    wider = replace(table, regular_columns=(*table.regular_columns, column("y", INT, ColumnKind.REGULAR)))
    with pytest.raises(CdcError):
        topics(registry, after, table, wider)
    assert topics(registry, before, table, wider) == ["cdc.shop.orders"] * 2


@pytest.mark.parametrize("forms", [(EXACT, STRING), (STRING, EXACT)])
def test_a_form_that_no_column_has_may_change(forms: tuple[TypeForms, TypeForms]) -> None:
    registry, table = MemoryRegistry(), with_column(INT)
    assert [topics(registry, chosen, table) for chosen in forms] == [["cdc.shop.orders"]] * 2


def test_the_rows_of_static_partitions_may_neither_come_nor_go() -> None:
    include, leave_out = STRING._replace(static_rows="include"), STRING
    for before, after in ((include, leave_out), (leave_out, include)):
        registry = MemoryRegistry()
        assert topics(registry, before, TABLE) == ["cdc.shop.orders"]
        with pytest.raises(CdcError) as error:
            topics(registry, after, TABLE)
        assert f"static_rows was {before.static_rows}, and would be {after.static_rows}" in error.value.problem


def test_the_first_static_column_needs_another_topic_only_if_its_rows_are_included() -> None:
    without = replace(TABLE, static_columns=())
    assert topics(MemoryRegistry(), STRING, without, TABLE) == ["cdc.shop.orders"] * 2
    included = STRING._replace(static_rows="include")
    assert topics(MemoryRegistry(), included, without, TABLE) == ["cdc.shop.orders", "cdc.shop.orders-v2"]


def test_a_field_of_a_json_column_that_is_renamed_needs_another_topic_and_one_that_is_added_does_not() -> None:
    def place(*names: str) -> Any:  # noqa: ANN401 - a table
        return with_column(replace(PLACE, field_names=names, field_types=(TEXT,) * len(names)))

    first = place("street", "zip")
    assert topics(MemoryRegistry(), STRING, first, place("street", "zip", "city")) == ["cdc.shop.orders"] * 2
    assert topics(MemoryRegistry(), STRING, first, place("road", "zip")) == ["cdc.shop.orders", "cdc.shop.orders-v2"]


def test_a_column_that_takes_the_field_of_a_part_is_refused() -> None:
    registry, split = MemoryRegistry(), STRING._replace(user_types="columns")
    table = with_column(PLACE)
    assert topics(registry, split, table) == ["cdc.shop.orders"]
    wider = replace(table, regular_columns=(*table.regular_columns, column("x_zip", TEXT, ColumnKind.REGULAR)))
    with pytest.raises(CdcError) as error:
        topics(registry, split, table, wider)
    assert "field x_zip was a part of x, and would be column x_zip" in error.value.problem

"""Debezium's JDBC sink into PostgreSQL takes every type with default settings, and shows what the messages say."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from cassandra_storage.formats.schema.tables import ColumnKind
from cassandra_storage.formats.types.cql_types import parse_type
from cassandra_storage.formats.types.marshal import UserType
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal
from materializer.commands.consumer_check import find_limits
from tests.support.consumers.jdbc_sink import JdbcSinks, SinkError
from tests.support.consumers.messages import Encoded, TableMessages
from tests.support.consumers.typed_values import (
    KEYSPACE,
    POSTGRESQL,
    STOPPED,
    TYPES,
    USER_TYPES,
    Typed,
    column,
    decimal,
    duration,
    number,
    sized,
    table_of,
    typed_table,
)

if TYPE_CHECKING:
    from cdc_common.messages.changes import ColumnImage

pytestmark = pytest.mark.servers

TEXT, INT, DECIMAL, DURATION = (parse_type(name, KEYSPACE, {}) for name in ("text", "int", "decimal", "duration"))
BY_NAME = {of.name: of for of in TYPES}


def history(messages: TableMessages, of: Typed) -> tuple[list[list[Encoded]], list[tuple[int, str | None]]]:
    """Rows of every value, of null, one that becomes null, and one that is deleted; and what is left in the table."""
    count, first = len(of.values), of.values[0][0]

    def change(row: int, after: dict[str, ColumnImage] | None) -> list[Encoded]:
        return messages.change(number(row, 4), (), after)

    batches = [change(row, {"v": value}) for row, (value, _) in enumerate(of.values)]
    batches += [change(count, {}), change(count + 1, {"v": first}), change(count + 1, {})]
    batches += [change(count + 2, {"v": first}), change(count + 2, None)]
    shown: list[tuple[int, str | None]] = [(row, text) for row, (_, text) in enumerate(of.values)]
    return batches, [*shown, (count, None), (count + 1, None)]


def rows(sinks: JdbcSinks, database: str, messages: TableMessages, columns: str) -> list[tuple[object, ...]]:
    table = messages.topic.replace(".", "_")
    return sinks.rows(database, f'SELECT {columns} FROM "{table}" ORDER BY id')


@pytest.mark.parametrize("of", TYPES, ids=[of.name for of in TYPES])
def test_every_type_arrives_with_default_settings(sinks: JdbcSinks, database: str, of: Typed) -> None:
    messages = TableMessages(typed_table(f"t{TYPES.index(of)}", of), DEFAULT_FORMS)
    batches, shown = history(messages, of)
    sinks.run(database, messages.topic, batches)
    assert rows(sinks, database, messages, "id, v::text") == shown
    assert rows(sinks, database, messages, "pg_typeof(v)::text")[0] == (POSTGRESQL[of.name],)


@pytest.mark.parametrize("name", STOPPED)
def test_what_stops_the_sink_is_what_the_check_says(sinks: JdbcSinks, database: str, name: str) -> None:
    table = typed_table(f"stopped{STOPPED.index(name)}", BY_NAME[name])
    messages = TableMessages(table, EXACT)
    with pytest.raises(SinkError):
        sinks.run(database, messages.topic, history(messages, BY_NAME[name])[0])
    assert any(limit.is_refused for limit in find_limits("jdbc", table, EXACT))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(POSTGRESQL.keys() - set(STOPPED)))
def test_the_sink_goes_on_with_every_other_type_in_the_exact_forms(sinks: JdbcSinks, database: str, name: str) -> None:
    messages = TableMessages(typed_table(f"exact{list(POSTGRESQL).index(name)}", BY_NAME[name]), EXACT)
    sinks.run(database, messages.topic, history(messages, BY_NAME[name])[0])


def test_a_decimal_of_one_column_is_numeric(sinks: JdbcSinks, database: str) -> None:
    forms = DEFAULT_FORMS._replace(fixed=(("v", FixedDecimal(12, 2)),))
    messages = TableMessages(typed_table("fixed", BY_NAME["decimal"]), forms)
    sinks.run(database, messages.topic, [messages.change(number(1, 4), (), {"v": decimal(2997, 2)})])
    assert rows(sinks, database, messages, "pg_typeof(v)::text, v::text") == [("numeric", "29.97")]


def test_texts_are_numbers_and_intervals_in_sql(sinks: JdbcSinks, database: str) -> None:
    messages = TableMessages(table_of("texts", (column("d", DECIMAL), column("i", DURATION))), DEFAULT_FORMS)
    row = {"d": decimal(2997, 2), "i": duration(1, 2, 3_500_000_000)}
    sinks.run(database, messages.topic, [messages.change(number(1, 4), (), row)])
    found = rows(sinks, database, messages, "d::numeric + 1, i::interval = '1 month 2 days 3.5 seconds'::interval")
    assert found == [(Decimal("30.97"), True)]


def test_out_of_range_dates_stop_the_sink_unless_they_are_null(sinks: JdbcSinks, database: str) -> None:
    of = Typed("timestamp", ((number(2**63 - 1, 8), ""),))
    as_is = TableMessages(typed_table("far", of), DEFAULT_FORMS)
    with pytest.raises(SinkError):
        sinks.run(database, as_is.topic, [as_is.change(number(1, 4), (), {"v": of.values[0][0]})])
    as_null = TableMessages(typed_table("far_null", of), DEFAULT_FORMS._replace(out_of_range="null"))
    sinks.run(database, as_null.topic, [as_null.change(number(1, 4), (), {"v": of.values[0][0]})])
    assert rows(sinks, database, as_null, "id, v::text") == [(1, None)]


STATIC = table_of(
    "stock",
    (column("v", TEXT),),
    clustering=(column("c", INT, ColumnKind.CLUSTERING, 0),),
    static=(column("s", TEXT, ColumnKind.STATIC),),
)


def test_partitions_with_only_static_columns_are_left_out(sinks: JdbcSinks, database: str) -> None:
    messages = TableMessages(STATIC, DEFAULT_FORMS)
    assert messages.change(number(1, 4), None, {"s": b"alone"}) == []
    batch = messages.change(number(2, 4), (number(3, 4),), {"s": b"shared", "v": b"x"})
    sinks.run(database, messages.topic, [batch])
    assert rows(sinks, database, messages, "id, c, s, v") == [(2, 3, "shared", "x")]


def test_included_they_stop_the_sink(sinks: JdbcSinks, database: str) -> None:
    messages = TableMessages(replace(STATIC, name="stock_all"), DEFAULT_FORMS._replace(static_rows="include"))
    with pytest.raises(SinkError):
        sinks.run(database, messages.topic, [messages.change(number(1, 4), None, {"s": b"alone"})])


def test_keys_of_every_kind_and_names_that_avro_lacks(sinks: JdbcSinks, database: str) -> None:
    clustering = tuple(
        column(name, parse_type(of, KEYSPACE, USER_TYPES), ColumnKind.CLUSTERING, place)
        for place, (name, of) in enumerate(
            {"d": "decimal", "t": "timestamp", "u": "timeuuid", "p": "frozen<tuple<int, text>>"}.items()
        )
    )
    messages = TableMessages(table_of("keys", (column("sum-größe", INT),), clustering=clustering), DEFAULT_FORMS)
    uuid = UUID("50554d6e-29bb-11e5-b345-feff819cdc9f")
    key = (decimal(150, 2), number(1_795_000_000_000, 8), uuid.bytes, sized(number(1, 4), b"a"))
    batches = [messages.change(number(1, 4), key, after) for after in ({"sum-größe": number(5, 4)}, None)]
    second = messages.change(number(2, 4), key, {"sum-größe": number(7, 4)})
    sinks.run(database, messages.topic, [*batches, second])
    found = rows(sinks, database, messages, "id, d, t::text, u::text, p, sum_grosse_xbbfb")
    assert found == [(2, "1.50", "2026-11-18 11:06:40", str(uuid), '[1,"a"]', 7)]


def test_fields_of_user_types_are_columns(sinks: JdbcSinks, database: str) -> None:
    """Also a field that ALTER TYPE adds in mid-stream."""
    split = DEFAULT_FORMS._replace(user_types="columns")
    wider = UserType("types", "address", ("street", "zip", "floor"), (TEXT, INT, INT), is_multi_cell=True)
    pair = column("pair", parse_type("frozen<tuple<int, decimal>>", KEYSPACE, {}))
    before = TableMessages(table_of("parts", (column("home", BY_NAME["address"].type), pair)), split)
    after = TableMessages(table_of("parts", (column("home", wider), pair)), split, before)
    street, floor = ((number(place, 2), value) for place, value in ((0, b"Elm 1"), (2, number(3, 4))))
    first = [
        before.change(number(1, 4), (), {"home": (street,), "pair": sized(number(1, 4), decimal(150, 2))}),
        before.change(number(2, 4), (), {"home": (street,)}),
    ]
    second = [after.change(number(1, 4), (), {"home": (street, floor)}), after.change(number(2, 4), (), {})]
    found = "id, home_street, home_zip, home_floor, pair_f0, pair_f1"
    sinks.run(database, before.topic, first)
    assert rows(sinks, database, before, found.replace(" home_floor,", "")) == [
        (1, "Elm 1", None, 1, "1.50"),
        (2, "Elm 1", None, None, None),
    ]
    sinks.run(database, before.topic, second)
    assert rows(sinks, database, after, found) == [(1, "Elm 1", None, 3, None, None), (2, None, None, None, None, None)]


def test_an_alter_in_mid_stream_adds_the_column(sinks: JdbcSinks, database: str) -> None:
    before = TableMessages(table_of("altered", (column("v", TEXT),)), DEFAULT_FORMS)
    wider = table_of("altered", (column("m", parse_type("map<text, int>", KEYSPACE, {})), column("v", TEXT)))
    first = [before.change(number(1, 4), (), {"v": b"a"}), before.change(number(2, 4), (), {"v": b"b"})]
    after = TableMessages(wider, DEFAULT_FORMS, before)
    second = [
        after.change(number(1, 4), (), {"v": b"c", "m": ((b"k", number(1, 4)),)}),
        after.change(number(2, 4), (), None),
        after.change(number(3, 4), (), {"v": b"d"}),
    ]
    sinks.run(database, before.topic, [*first, *second])
    assert rows(sinks, database, after, "id, m::text, v") == [(1, '{"k":1}', "c"), (3, None, "d")]

"""From messages of the inputs to messages of the target, with fastavro and DuckDB as the judges."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.messages import wire
from joinery.joining.join import join_chunk
from joinery.output.messages import JoinedWriter
from joinery.planning.joined_schema import key_schema, value_schema
from joinery.routing.route import route
from joinery.routing.rows import RowCutter
from tests.support.joinery import tables
from tests.support.joinery.tables import decode, encode, envelope, plan_of
from tests.support.materializer.memory_state import MemoryState

ORDERS = {"namespace": "shop", "source": "orders"}
USERS = {"namespace": "shop", "source": "users"}
JOINS = {"JOIN": (False, False), "LEFT JOIN": (False, True), "RIGHT JOIN": (True, False), "FULL JOIN": (True, True)}
ORDER = st.fixed_dictionaries(
    {
        "id": st.integers(0, 3),
        "user_id": st.none() | st.integers(0, 2),
        "total": st.none() | st.sampled_from([0.5, 2.0]),
        "note": st.none() | st.text(max_size=2),
    }
)
USER = st.fixed_dictionaries(
    {
        "id": st.integers(0, 2),
        "name": st.none() | st.text("ab", max_size=2),
        "city": st.none() | st.text("c", max_size=1),
    }
)
CHANGE = st.tuples(st.just(0), ORDER, st.booleans()) | st.tuples(st.just(1), USER, st.booleans())


class Joiner:
    """A join of orders and users, from message to message."""

    def __init__(self, optional: tuple[bool, bool], where: tuple[str, str] = ("", "")) -> None:
        self.where = where
        given = zip((ORDERS, USERS), optional, where, strict=True)
        o, u = ({**table, "optional": flag, "where": [text] if text else []} for table, flag, text in given)
        self.plan = plan_of(input={"o": o, "u": u})
        self.rows: list[dict[int, Any]] = [{}, {}]
        self.joined: dict[bytes, Any] = {}
        self.sources: list[dict[str, Any]] = []
        self._sequences: dict[tuple[int, int], int] = {}
        self._tables = [tables.value_schema("orders", tables.ORDERS), tables.value_schema("users", tables.USERS)]
        self._schemas = key_schema(self.plan), value_schema(self.plan)
        self._cutters = [RowCutter(self.plan, number, schema) for number, schema in enumerate(self._tables)]
        self._writer = JoinedWriter(self.plan, "cdc.shop.orders_of_users", 1, 2)
        self._state = MemoryState()
        self._offset = 0

    def change(self, number: int, row: dict[str, Any], *, is_delete: bool) -> None:
        before, after = self.rows[number].pop(row["id"], None), None if is_delete else row
        if after is not None:
            self.rows[number][row["id"]] = after
        if before is None and after is None:
            return
        sequence = self._sequences[number, row["id"]] = self._sequences.get((number, row["id"]), 0) + 1
        value = encode(self._tables[number], envelope(before, after, sequence))
        routed = route(self._cutters[number].change(value, 0, self._offset))
        messages = list(enumerate(routed, self._offset))
        made = join_chunk(self.plan.rule, self._state, messages, 1 << 30)
        assert not made.left
        self._state.apply(made.writes)
        self._offset += 2
        written = list(self._writer.messages(made.changes, 3, ts_ms=6_000))
        for message, following in zip_longest(written, written[1:]):
            assert (message.topic, message.partition) == ("cdc.shop.orders_of_users", 3)
            if message.value is not None:
                self._take(message.key, message.value)
                is_deleted = message.key not in self.joined
                assert is_deleted == (following is not None and following[2:] == (message.key, None, ()))

    def _take(self, key: bytes, value: bytes) -> None:
        assert (wire.schema_id(key), wire.schema_id(value)) == (1, 2)
        keys = decode(self._schemas[0], key[wire.HEADER_SIZE :])
        found = decode(self._schemas[1], value[wire.HEADER_SIZE :])
        assert self.joined.pop(key, None) == found["before"]
        if found["after"] is None:
            assert found["op"] == "d"
        else:
            assert found["op"] == ("u" if found["before"] else "c")
            assert keys.items() <= found["after"].items()
            self.joined[key] = found["after"]
        source = found["source"]
        self.sources.append(source)
        assert (source["connector"], source["ts_us"], source["cause"], found["ts_ms"]) == (
            "joinery",
            5_000_000,
            "write",
            6_000,
        )

    def by_sql(self, kind: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as database:
            database.execute("CREATE TABLE o (id INT, user_id INT, total DOUBLE, note VARCHAR)")
            database.execute("CREATE TABLE u (id BIGINT, name VARCHAR, city VARCHAR)")
            for of, columns in enumerate((tables.ORDERS, tables.USERS)):
                for row in self.rows[of].values():
                    values = [row[column] for column in columns]
                    database.execute(f"INSERT INTO {'ou'[of]} VALUES (?{', ?' * (len(values) - 1)})", values)
            selected = "coalesce(o.user_id, u.id), o.id, o.total, u.name"
            filtered = zip("ou", self.where, strict=True)
            o, u = (f"(SELECT * FROM {name} WHERE {text or 'true'}) {name}" for name, text in filtered)
            return database.execute(f"SELECT {selected} FROM {o} {kind} {u} ON o.user_id = u.id").fetchall()


@pytest.mark.parametrize("kind", JOINS)
@settings(max_examples=40, deadline=None)
@given(changes=st.lists(CHANGE, max_size=12))
def test_the_target_equals_the_sql_join(kind: str, changes: list[tuple[int, dict[str, Any], bool]]) -> None:
    joiner = Joiner(JOINS[kind])
    for number, row, is_delete in changes:
        joiner.change(number, row, is_delete=is_delete)
    assert sorted((tuple(row.values()) for row in joiner.joined.values()), key=repr) == sorted(
        joiner.by_sql(kind), key=repr
    )


FILTERS = [("note is not null", "city is null"), ("total > 0.5", "name in ('a', 'b')"), ("", "name <> 'a'")]
"""Of columns that the joined rows have, and of others: a change of these alone moves a row into the filter."""


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("where", FILTERS, ids=str)
@settings(max_examples=20, deadline=None)
@given(changes=st.lists(CHANGE, max_size=12))
def test_filtered_inputs(kind: str, where: tuple[str, str], changes: list[tuple[int, dict[str, Any], bool]]) -> None:
    """A row that enters its filter comes, and one that leaves it goes: as if the input had only the rows that pass."""
    joiner = Joiner(JOINS[kind], where)
    for number, row, is_delete in changes:
        joiner.change(number, row, is_delete=is_delete)
        joined = sorted((tuple(found.values()) for found in joiner.joined.values()), key=repr)
        assert joined == sorted(joiner.by_sql(kind), key=repr)


def test_source_names_the_sequences_of_the_inputs_rows() -> None:
    joiner = Joiner((False, True))
    order = {"id": 1, "user_id": 7, "total": 2.0, "note": None}
    joiner.change(0, order, is_delete=False)
    joiner.change(0, {**order, "total": 3.0}, is_delete=False)
    joiner.change(1, {"id": 7, "name": "Ada", "city": None}, is_delete=False)
    joiner.change(1, {"id": 7, "name": "Ada", "city": None}, is_delete=True)
    assert [source["rows"] for source in joiner.sources] == [[1, None], [2, None], [2, 1], [2, None]]
    assert [source["input"] for source in joiner.sources] == ["o", "o", "u", "u"]
    assert [source["row_sequence"] for source in joiner.sources] == [0, 2, 4, 6]

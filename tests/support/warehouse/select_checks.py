"""Tables of a warehouse beside `SELECT *` of Cassandra and beside the change messages, as any client reads them.

All sides are brought to the plain form of dev.local_stack.clients.compare, which shares no code with the warehouse.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from dev.local_stack.clients.compare import (
    EPOCH,
    Plain,
    from_avro,
    from_driver,
    has_empty_key,
    holds_empty,
    key_of,
    plain_row,
)
from dev.verify.model.outcome import base_of, newest_topics
from warehouse.tables.forms import CHANGES, CURRENT
from warehouse.targets.statements import full_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.cql import CqlClient, TableColumns
    from dev.local_stack.clients.history import History
    from tests.support.warehouse.beside_writes import LoadedWarehouse
    from warehouse.records import Column, State

Row: TypeAlias = "tuple[tuple[Any, ...], Mapping[str, Any]]"
"""The columns of the form, and the row."""
_FIRST_US, _LAST_US = -2_440_588 * 86_400_000_000, 2**63 - 2
"""The times that both warehouses have: from 4713 BC on, and what fits into 64 bits and is not infinite."""


class Version(NamedTuple):
    """A row of `history` or `changes` that must be there."""

    # What the form has beside the row.
    own: tuple[Any, ...]
    # The row's key.
    key: Plain
    # The row, with values as a client of messages or of the warehouse gets them.
    row: Mapping[str, Any]


class SelectChecks:
    """The checks of one warehouse. `rows`: the number of rows that were compared."""

    def __init__(self, client: CqlClient, keyspace: str, prefix: str, history: History) -> None:
        self.rows = 0
        self._client = client
        self._keyspace = keyspace
        self._prefix = prefix
        self._by_topic: dict[str, list[list[Change]]] = defaultdict(list)
        for (topic, _), changes in history.changes.items():
            self._by_topic[topic].append(changes)
        self._newest = set(newest_topics(history).values())

    def ends(self) -> dict[str, dict[int, int]]:
        """The offsets after the last changes, by topic and partition."""
        found: dict[str, dict[int, int]] = {}
        for topic, keys in self._by_topic.items():
            of_topic = found.setdefault(self._topic(topic), {})
            for change in itertools.chain(*keys):
                of_topic[change.partition] = max(of_topic.get(change.partition, 0), change.offset + 1)
        return found

    def problems(self, warehouse: LoadedWarehouse) -> list[str]:
        """A line for each difference."""
        states = warehouse.states(self.ends())
        found = [f"{topic}: {error}" for topic, error in warehouse.errors.items()]
        for topic in sorted(self._by_topic):
            state = states[self._topic(topic)]
            assert state is not None, topic
            found += [f"{topic}: {line}" for line in self._table_problems(warehouse, topic, state)]
        return [f"{warehouse.name}: {line}" for line in found]

    def _topic(self, name: str) -> str:
        return f"{self._prefix}.{name}"

    def _table_problems(self, warehouse: LoadedWarehouse, topic: str, state: State) -> Iterator[str]:
        columns = self._client.columns(self._keyspace, base_of(topic.partition(".")[2]))
        if warehouse.form is CURRENT:
            yield from self._current(warehouse, topic, state, columns)
            return
        own = [_sql(name, warehouse) for name in _OWN[warehouse.form.name]]
        read = self._read(warehouse, topic, state, own)
        wanted_of = _changes if warehouse.form is CHANGES else _versions
        wanted = list(itertools.chain(*map(wanted_of, self._by_topic[topic])))
        self.rows += len(wanted)
        if topic in self._newest:
            found = [Version(values, _key(columns, row), row) for values, row in read]
            yield from _differences(found, [Version(values, _key(columns, row), row) for values, row in wanted])
        elif Counter(values for values, _ in read) != Counter(values for values, _ in wanted):
            yield "other versions"  # the key's columns had other types, which Cassandra no longer tells

    def _current(self, warehouse: LoadedWarehouse, topic: str, state: State, columns: TableColumns) -> Iterator[str]:
        read = [row for _, row in self._read(warehouse, topic, state, [])]
        if topic not in self._newest:
            if read:
                yield f"{len(read)} rows are left of a former key"
            return
        found: dict[Plain, Mapping[str, Plain]] = {}
        for row in read:
            key, shown = _key(columns, row), _plain(columns, row)
            if key in found:
                yield f"{key} is there twice"
            found[key] = shown
            kept = [name for name in row.keys() - columns.types.keys() if row[name] is not None]
            if kept:
                yield f"{key} has values of columns that were dropped: {kept}"
        wanted = dict(self._selected(columns, base_of(topic.partition(".")[2])))
        self.rows += len(wanted)
        for key in found.keys() | wanted.keys():
            if key not in found or key not in wanted:
                yield f"{key} is only in {'Cassandra' if key in wanted else 'the warehouse'}"
                continue
            for name, value in wanted[key].items():
                if found[key].get(name) != value:
                    yield f"{key} {name}: Cassandra {value!r}, the warehouse {found[key].get(name)!r}"

    def _selected(self, columns: TableColumns, table: str) -> Iterator[tuple[Plain, Mapping[str, Plain]]]:
        """The rows of Cassandra. What is empty is null, as in messages."""
        for row in self._client.rows(self._keyspace, table):
            if not has_empty_key(columns, row):
                empty = (name for name in row if name not in columns.key and holds_empty(row[name]))
                shown = {**row, **dict.fromkeys(empty)}
                yield key_of(columns, row, from_driver), plain_row(columns, shown, from_driver)

    def _read(
        self, warehouse: LoadedWarehouse, topic: str, state: State, own: Sequence[str]
    ) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The warehouse's own columns of each row, and the row by the newest names of its fields."""
        shown = [*own, *(_shown(column, warehouse) for column in state.columns)]
        table = full_name(warehouse.table(self._topic(topic)))
        loader = warehouse.loader()
        try:
            found = loader.connection.run(f"SELECT {', '.join(shown)} FROM {table}")
        finally:
            loader.connection.close()
        names = [column.fields[0] for column in state.columns]
        return [(tuple(row[: len(own)]), dict(zip(names, row[len(own) :], strict=True))) for row in found]


_OWN = {
    "changes": ("_partition", "_offset", "_op", "_sequence", "_changed_at"),
    "history": ("_sequence", "valid_from", "valid_to", "is_current"),
}


def _is_duckdb(warehouse: LoadedWarehouse) -> bool:
    return warehouse.settings.warehouse.target.startswith("duckdb:")


def _sql(name: str, warehouse: LoadedWarehouse) -> str:
    """Times as µs since 1970."""
    if name not in {"_changed_at", "valid_from", "valid_to"}:
        return name
    return f"epoch_us({name})" if _is_duckdb(warehouse) else f"CAST(EXTRACT(EPOCH FROM {name}) * 1000000 AS BIGINT)"


def _shown(column: Column, warehouse: LoadedWarehouse) -> str:
    """A column as a client of change messages has its values: dates and times are numbers, JSON is text."""
    name = f'"{column.name}"'
    match column.type:
        case "DATE":
            return f"{name} - DATE '1970-01-01'"
        case "TIMESTAMPTZ":
            return (
                f"epoch_ms({name})" if _is_duckdb(warehouse) else f"CAST(EXTRACT(EPOCH FROM {name}) * 1000 AS BIGINT)"
            )
        case "REAL" | "FLOAT":
            return f"CAST({name} AS DOUBLE PRECISION)"
        case "JSON":
            return f"CAST({name} AS TEXT)"
    return name


def _key(columns: TableColumns, row: Mapping[str, Any]) -> Plain:
    return key_of(columns, dict(row), from_avro)


def _plain(columns: TableColumns, row: Mapping[str, Any]) -> dict[str, Plain]:
    """The other columns that the table has."""
    return plain_row(columns, {name: value for name, value in row.items() if name in columns.types}, from_avro)


def _versions(changes: Sequence[Change]) -> Iterator[Row]:
    """The versions of a row: each begins no earlier than the one before it, and ends where the next change begins."""
    values = [change.value for change in changes if change.value is not None]
    begins = list(itertools.accumulate((_time(value) for value in values), max))
    for value, start, end in zip(values, begins, [*begins[1:], None], strict=True):
        if value["op"] != "d":
            yield (value["source"]["row_sequence"], start, end, end is None), value["after"]


def _changes(changes: Sequence[Change]) -> Iterator[Row]:
    """Each change, with the row after it; of a deletion, before it."""
    for change in changes:
        value = change.value
        assert value is not None
        own = (change.partition, change.offset, value["op"], value["source"]["row_sequence"], _time(value))
        yield own, value["before" if value["op"] == "d" else "after"]


def _time(value: Mapping[str, Any]) -> int:
    return min(max(int(value["source"]["ts_us"]), _FIRST_US), _LAST_US)


def _differences(found: Sequence[Version], wanted: Sequence[Version]) -> Iterator[str]:
    """A line for each version that is only on one side, is there twice, or has another row. Messages are read by the
    newest schema: columns that are gone by then are in the warehouse alone.
    """
    by_place = defaultdict(list)
    for version in found:
        by_place[version.own, version.key].append(version.row)
    for version in wanted:
        same = by_place.pop((version.own, version.key), [])
        if len(same) != 1:
            yield f"{version.key} {version.own} is there {len(same)} times"
            continue
        for name, value in version.row.items():
            if not _is_same(value, same[0].get(name)):
                yield f"{version.key} {version.own} {name}: {value!r}, the warehouse {same[0].get(name)!r}"
    for (own, key), left in by_place.items():
        yield f"{key} {own} is there {len(left)} times, and no message has it"


def _is_same(sent: Any, found: Any) -> bool:  # noqa: ANN401 - of any type
    """Whether the warehouse has a message's value. Its type may have been another one than that of the column now, so
    values are compared as they are.
    """
    if sent is None or found is None:
        return sent is found
    if isinstance(sent, list):
        items = json.loads(found) if isinstance(found, str) else found
        return len(sent) == len(items) and all(map(_is_same, sent, items))
    if isinstance(sent, float):
        return repr(sent) == repr(float(found))
    return bool(_number(sent) == _number(found))


def _number(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Times in ms and dates in days since 1970; UUIDs as text."""
    if isinstance(value, dt.datetime):
        return (value - EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days
    return str(value) if isinstance(value, UUID) else value

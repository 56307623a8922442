"""Random statements over tables of several shapes, with rising timestamps, each told to a model as well."""

from __future__ import annotations

import operator
import random
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dev.local_stack.clients.cql import CqlClient
from tests.support.e2e.row_model import TableModel

if TYPE_CHECKING:
    from collections.abc import Callable


MANY_COLUMNS = "s set<text>, m map<text, int>, l list<int>, f frozen<list<int>>"
WIDE_COLUMNS = "p int, c text, v text, n int, s text static, PRIMARY KEY (p, c)"
SCHEMA = (
    "CREATE KEYSPACE $k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': $r}",
    "CREATE TABLE $k.plain (id int PRIMARY KEY, a text, b bigint, c double) WITH cdc = true",
    f"CREATE TABLE $k.wide ({WIDE_COLUMNS}) WITH CLUSTERING ORDER BY (c DESC) AND cdc = true",
    f"CREATE TABLE $k.many (id text PRIMARY KEY, {MANY_COLUMNS}) WITH cdc = true",
)
PLAIN = tuple(range(60))
WIDE = tuple((p, c) for p in range(8) for c in "abcdefghij")
MANY = tuple(f"many {number}" for number in range(40))
MOST_IN_FLIGHT = 32
LATE_SHARE = 30
BOUNDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass
class Workload:
    """Runs statements in order for each partition, or (`is_in_order` off) several of one at the same time, so that each
    log has them in an order of its own; `timestamp` is the last one's, µs. late_seconds: by how much one statement of
    LATE_SHARE is late; then in no order.
    """

    client: CqlClient
    keyspace: str
    seed: int
    timestamp: int
    replicas: int = 1
    is_in_order: bool = True
    late_seconds: float = 0.0
    plain: TableModel = field(default_factory=lambda: TableModel(("a", "b", "c")))
    wide: TableModel = field(default_factory=lambda: TableModel(("v", "n"), ("s",)))
    many: TableModel = field(default_factory=lambda: TableModel(("s", "m", "l", "f")))
    count: int = 0

    def __post_init__(self) -> None:
        self.pick = random.Random(self.seed)
        for statement in SCHEMA:
            self.client.execute(statement.replace("$k", self.keyspace).replace("$r", str(self.replicas)))
        self._prepared: dict[str, Any] = {}
        self._busy: dict[object, threading.Event] = {}
        self._room = threading.Semaphore(MOST_IN_FLIGHT)
        self._errors: list[Exception] = []

    def models(self) -> dict[str, TableModel]:
        return {f"{self.keyspace}.{name}": getattr(self, name) for name in ("plain", "wide", "many")}

    def run(self, count: int) -> None:
        makers: list[Callable[[], None]] = [self._plain, self._wide, self._many]
        for _ in range(count):
            self.pick.choice(makers)()

    def close(self) -> None:
        """One more change of every key: when it has come, all before it has."""
        for key in PLAIN:
            self._insert("plain", self.plain, ("id",), (key,), {"a": "the end"})
        for wide_key in WIDE:
            self._insert("wide", self.wide, ("p", "c"), wide_key, {"v": "the end"})
        for many_key in MANY:
            self._insert("many", self.many, ("id",), (many_key,), {"f": [0, 0, 0]})
        for _ in range(MOST_IN_FLIGHT):
            self._room.acquire()
        self._room.release(MOST_IN_FLIGHT)
        assert not self._errors, self._errors[0]

    def _plain(self) -> None:
        key = (self.pick.choice(PLAIN),)
        values = {"a": self._text(), "b": self.pick.randint(-3, 3), "c": self.pick.choice((0.0, -1.5, 1e300))}
        some = {name: values[name] for name in values if self.pick.random() < 0.5} or {"a": None}
        match self.pick.choices("iudr", (30, 40, 15, 15))[0]:
            case "i":
                self._insert("plain", self.plain, ("id",), key, some)
            case "u":
                self._update("plain", self.plain, ("id",), key, some)
            case "d":
                self._delete_columns("plain", self.plain, ("id",), key, tuple(some))
            case _:
                self._delete("plain", self.plain, ("id",), key)

    def _wide(self) -> None:
        key = self.pick.choice(WIDE)
        match self.pick.choices("iudrpsg", (30, 40, 10, 14, 1, 4, 2))[0]:
            case "i":
                self._insert("wide", self.wide, ("p", "c"), key, {"v": self._text(), "n": self.pick.randint(0, 2)})
            case "u":
                self._update("wide", self.wide, ("p", "c"), key, {"n": self.pick.choice((None, 1, 2, 3))})
            case "d":
                self._delete_columns("wide", self.wide, ("p", "c"), key, ("v",))
            case "p":
                self.wide.delete_partition(key[0])
                self._send(f"DELETE FROM {self.keyspace}.wide USING TIMESTAMP ? WHERE p = ?", key[:1], ("wide", key[0]))
            case "s":
                self._static(key[0])
            case "g":
                self._range(*key)
            case _:
                self._delete("wide", self.wide, ("p", "c"), key)

    def _static(self, partition: int) -> None:
        value = self.pick.choice((None, "a", "b"))
        self.wide.set_static(partition, {"s": value})
        text = f"UPDATE {self.keyspace}.wide USING TIMESTAMP ? SET s = ? WHERE p = ?"
        self._send(text, (value, partition), ("wide", partition))

    def _range(self, partition: int, first: str) -> None:
        bound = self.pick.choice(tuple(BOUNDS))
        self.wide.delete_where(partition, lambda key: BOUNDS[bound](key[1], first))
        text = f"DELETE FROM {self.keyspace}.wide USING TIMESTAMP ? WHERE p = ? AND c {bound} ?"
        self._send(text, (partition, first), ("wide", partition))

    def _many(self) -> None:
        key = (self.pick.choice(MANY),)
        makers = (self._many_whole, self._set_element, self._map_entry, self._list_append, self._many_delete)
        appends = 15 if self.is_in_order else 0  # what is appended comes in the order in which the node met it
        self.pick.choices(makers, (25, 25, 25, appends, 10))[0](key)

    def _many_whole(self, key: tuple[str]) -> None:
        values: dict[str, Any] = {
            "s": {self._text() for _ in range(self.pick.randrange(3))},
            "m": {self._text(): number for number in range(self.pick.randrange(3))},
            "l": [self.pick.randrange(9) for _ in range(self.pick.randrange(3))],
            "f": [self.pick.randrange(9) for _ in range(self.pick.randrange(1, 3))],
        }
        some = {name: values[name] for name in values if self.pick.random() < 0.5} or {"s": None}
        write = self._insert if self.pick.random() < 0.5 else self._update
        write("many", self.many, ("id",), key, some)

    def _set_element(self, key: tuple[str]) -> None:
        element, held = self._text(), self.many.value(key, "s") or set()
        adds = self.pick.random() < 0.6
        sign = "+" if adds else "-"
        self.many.update(key, {"s": held | {element} if adds else held - {element}})
        self._send(
            f"UPDATE {self.keyspace}.many USING TIMESTAMP ? SET s = s {sign} ? WHERE id = ?",
            ({element}, *key),
            ("many", key[0]),
        )

    def _map_entry(self, key: tuple[str]) -> None:
        name, held = self._text(), self.many.value(key, "m") or {}
        number = self.pick.choice((None, 1, 2, 3))
        entries = {**held, name: number} if number is not None else {at: held[at] for at in held if at != name}
        self.many.update(key, {"m": entries})
        self._send(
            f"UPDATE {self.keyspace}.many USING TIMESTAMP ? SET m[?] = ? WHERE id = ?",
            (name, number, *key),
            ("many", key[0]),
        )

    def _list_append(self, key: tuple[str]) -> None:
        number = self.pick.randrange(9)
        self.many.update(key, {"l": [*(self.many.value(key, "l") or []), number]})
        self._send(
            f"UPDATE {self.keyspace}.many USING TIMESTAMP ? SET l = l + ? WHERE id = ?",
            ([number], *key),
            ("many", key[0]),
        )

    def _many_delete(self, key: tuple[str]) -> None:
        if self.pick.random() < 0.5:
            self._delete("many", self.many, ("id",), key)
        else:
            self._delete_columns("many", self.many, ("id",), key, ("s", "m"))

    def _insert(
        self, table: str, model: TableModel, names: tuple[str, ...], key: tuple[Any, ...], values: dict[str, Any]
    ) -> None:
        model.insert(key, values)
        columns = (*names, *values)
        marks = ", ".join("?" for _ in columns)
        text = f"INSERT INTO {self.keyspace}.{table} ({', '.join(columns)}) VALUES ({marks}) USING TIMESTAMP ?"
        self._send(text, (*key, *values.values()), (table, key[0]), timestamp_last=True)

    def _update(
        self, table: str, model: TableModel, names: tuple[str, ...], key: tuple[Any, ...], values: dict[str, Any]
    ) -> None:
        model.update(key, values)
        sets = ", ".join(f"{name} = ?" for name in values)
        text = f"UPDATE {self.keyspace}.{table} USING TIMESTAMP ? SET {sets} WHERE {_where(names)}"
        self._send(text, (*values.values(), *key), (table, key[0]))

    def _delete_columns(
        self, table: str, model: TableModel, names: tuple[str, ...], key: tuple[Any, ...], columns: tuple[str, ...]
    ) -> None:
        model.update(key, dict.fromkeys(columns))
        text = f"DELETE {', '.join(columns)} FROM {self.keyspace}.{table} USING TIMESTAMP ? WHERE {_where(names)}"
        self._send(text, key, (table, key[0]))

    def _delete(self, table: str, model: TableModel, names: tuple[str, ...], key: tuple[Any, ...]) -> None:
        model.delete(key)
        self._send(f"DELETE FROM {self.keyspace}.{table} USING TIMESTAMP ? WHERE {_where(names)}", key, (table, key[0]))

    def _send(self, text: str, parameters: tuple[Any, ...], partition: object, *, timestamp_last: bool = False) -> None:
        """Send in order, one statement of a partition at a time, so that the log has them in this order."""
        self.timestamp += 1
        self.count += 1
        values = (*parameters, self.timestamp) if timestamp_last else (self.timestamp, *parameters)
        if text not in self._prepared:
            self._prepared[text] = self.client.prepare(text)
        previous = self._busy.get(partition)
        if previous and self.is_in_order:
            previous.wait()
        self._room.acquire()
        event = self._busy[partition] = threading.Event()
        arguments = self._prepared[text], values, event
        if self.late_seconds and not self.count % LATE_SHARE:
            threading.Timer(self.late_seconds, self._submit, arguments).start()
        else:
            self._submit(*arguments)

    def _submit(self, prepared: Any, values: tuple[Any, ...], event: threading.Event) -> None:  # noqa: ANN401 - the driver's
        try:
            self.client.submit(prepared, values, lambda error: self._answered(event, error))
        except Exception as error:  # noqa: BLE001 - `close` raises it
            self._answered(event, error)

    def _answered(self, event: threading.Event, error: Exception | None) -> None:
        if error is not None:
            self._errors.append(error)
        self._room.release()
        event.set()

    def _text(self) -> str:
        return self.pick.choice(("x", "y", "z", "émile", ""))


def _where(names: tuple[str, ...]) -> str:
    return " AND ".join(f"{name} = ?" for name in names)

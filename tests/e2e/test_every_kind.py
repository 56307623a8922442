"""Every kind of write, some with timestamps of long ago, on a real node: what came out last is what SELECT shows."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from local_stack.compare import compare
from local_stack.history import History

if TYPE_CHECKING:
    from collections.abc import Callable

    from local_stack.change_reader import Change, ChangeReader
    from local_stack.cql import CqlClient

pytestmark = pytest.mark.servers

STATEMENTS = 1500
PARTITIONS = 6
LONGEST_TTL = 4
MOST_SECONDS = 120.0
END = 99
SCHEMA = (
    "CREATE KEYSPACE kinds WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE kinds.pair (x int, y text)",
    (
        "CREATE TABLE kinds.t (p int, c int, d text, st text static, sm set<int> static, v text, n varint, s set<text>,"
        " m map<int, text>, l list<int>, u pair, f frozen<pair>, PRIMARY KEY (p, c, d))"
        " WITH CLUSTERING ORDER BY (c DESC, d ASC) AND cdc = true"
    ),
    "CREATE TABLE kinds.hits (p int, c int, n counter, PRIMARY KEY (p, c)) WITH cdc = true",
    "CREATE TABLE kinds.keys (p int, c decimal, PRIMARY KEY (p, c)) WITH cdc = true",
)


class Workload:
    """Random statements; each `USING` clause has a timestamp of its own, so that no two writes tie."""

    def __init__(self, seed: int) -> None:
        self._pick = random.Random(seed)
        self._start = int(time.time() * 1e6)
        self._count = 0

    def statement(self) -> str:
        self._count += 1
        return str(self._pick.choices(*zip(*self._kinds(), strict=True))[0]())  # type: ignore[operator]

    def _kinds(self) -> list[tuple[Callable[[], str], int]]:
        return [
            (self._insert, 8),
            (self._update, 8),
            (self._static, 3),
            (self._collection, 8),
            (self._delete_cell, 3),
            (self._delete_row, 2),
            (self._delete_range, 2),
            (self._delete_partition, 1),
            (self._batch, 1),
            (self._hit, 3),
            (self._key, 1),
        ]

    def _using(self, *, ttl: bool = False) -> str:
        late = self._pick.random() < 0.2
        timestamp = self._start + self._count * 1000 - (self._pick.randrange(400) * 1000 - 500 if late else 0)
        lives = f" AND TTL {self._pick.randint(1, LONGEST_TTL)}" if ttl and self._pick.random() < 0.25 else ""
        return f"USING TIMESTAMP {timestamp}{lives}"

    def _row(self) -> str:
        return f"p = {self._p()} AND c = {self._pick.randrange(4)} AND d = '{self._pick.choice('ab')}'"

    def _p(self) -> int:
        return self._pick.randrange(PARTITIONS)

    def _text(self) -> str:
        return f"'{self._pick.randrange(1000)}'"

    def _insert(self) -> str:
        c, d = self._pick.randrange(4), self._pick.choice("ab")
        values = f"{self._p()}, {c}, '{d}', {self._text()}, {10 ** self._pick.randrange(30)}, {{x: {c}, y: null}}"
        return f"INSERT INTO kinds.t (p, c, d, v, n, f) VALUES ({values}) {self._using(ttl=True)}"

    def _update(self) -> str:
        return f"UPDATE kinds.t {self._using(ttl=True)} SET v = {self._text()} WHERE {self._row()}"

    def _static(self) -> str:
        value = self._pick.choice([f"st = {self._text()}", "st = null", "sm = sm + {1, 2}", "sm = sm - {1}"])
        return f"UPDATE kinds.t {self._using(ttl=True)} SET {value} WHERE p = {self._p()}"

    def _collection(self) -> str:
        one = self._pick.randrange(5)
        value = self._pick.choice(
            [
                f"s = {{'{one}', 'z'}}",
                f"s = s + {{'{one}'}}",
                f"s = s - {{'{one}'}}",
                f"m = {{{one}: 'new'}}",
                f"m[{one}] = {self._text()}",
                f"m = m - {{{one}}}",
                f"l = [{one}]",
                f"l = l + [{one}]",
                f"l = [{one}] + l",
                "l = null",
                f"u.x = {one}",
                f"u = {{x: {one}, y: 'y'}}",
                "u.y = null",
                "s = {}",
            ]
        )
        return f"UPDATE kinds.t {self._using(ttl=True)} SET {value} WHERE {self._row()}"

    def _delete_cell(self) -> str:
        column = self._pick.choice(["v", "n", "s", "m[1]", "l", "u", "f", "v, s"])
        return f"DELETE {column} FROM kinds.t {self._using()} WHERE {self._row()}"

    def _delete_row(self) -> str:
        return f"DELETE FROM kinds.t {self._using()} WHERE {self._row()}"

    def _delete_range(self) -> str:
        c = self._pick.randrange(4)
        of = self._pick.choice(
            [
                f"c = {c}",
                f"c > {c}",
                f"c <= {c}",
                f"c >= {c} AND c < {c + 2}",
                f"c = {c} AND d > 'a'",
                f"(c, d) >= ({c}, 'b')",
            ]
        )
        return f"DELETE FROM kinds.t {self._using()} WHERE p = {self._p()} AND {of}"

    def _delete_partition(self) -> str:
        return f"DELETE FROM kinds.t {self._using()} WHERE p = {self._p()}"

    def _batch(self) -> str:
        kinds = [self._insert, self._update, self._static, self._delete_row, self._delete_range]
        statements = "; ".join(self._pick.choice(kinds)() for _ in range(4))
        return f"BEGIN {self._pick.choice(['', 'UNLOGGED '])}BATCH {statements}; APPLY BATCH"

    def _hit(self) -> str:
        return f"UPDATE kinds.hits SET n = n + {self._pick.randint(-3, 9)} WHERE p = {self._p()} AND c = 1"

    def _key(self) -> str:
        """1.0 and 1.00 are one row."""
        number = f"{self._pick.randrange(3)}.{'0' * self._pick.randint(1, 3)}"
        verb = f"INSERT INTO kinds.keys (p, c) VALUES ({self._p()}, {number}) {self._using()}"
        return verb if self._pick.random() < 0.7 else f"DELETE FROM kinds.keys {self._using()} WHERE p = {self._p()}"


def test_every_kind_of_write_ends_in_what_select_shows(
    client: CqlClient, follow: Callable[[str], ChangeReader]
) -> None:
    for statement in SCHEMA:
        client.run(statement)
    workload = Workload(seed=11)
    for _ in range(STATEMENTS):
        client.run(workload.statement())
    time.sleep(LONGEST_TTL + 1)  # what has a TTL has expired when the marks are written
    history = read_to_marks(follow("kinds"), mark(client))
    assert list(history.problems()) == []
    result = compare(client, history, [("kinds", table) for table in ("t", "hits", "keys")])
    assert result.differences == []
    assert min(result.tables.values()) > PARTITIONS
    changes = [change.value for changes in history.changes.values() for change in changes if change.value]
    assert {"c", "u", "d"} == {value["op"] for value in changes}
    assert {"write", "expiry"} == {value["source"]["cause"] for value in changes}


def mark(client: CqlClient) -> int:
    """Write a last row to every partition of every table; how many."""
    for p in range(PARTITIONS):
        client.run(f"INSERT INTO kinds.t (p, c, d, v) VALUES ({p}, {END}, 'end', 'end')")
        client.run(f"UPDATE kinds.hits SET n = n + 1 WHERE p = {p} AND c = {END}")
        client.run(f"INSERT INTO kinds.keys (p, c) VALUES ({p}, {END})")
    return 3 * PARTITIONS


def read_to_marks(reader: ChangeReader, marks: int) -> History:
    history = History()
    start = time.monotonic()
    seen = 0
    while seen < marks:
        assert time.monotonic() - start < MOST_SECONDS, f"{seen} of {marks} marks have come"
        changes = reader.poll(0.2)
        history.add(changes)
        seen += sum(is_mark(change) for change in changes)
    return history


def is_mark(change: Change) -> bool:
    key: dict[str, Any] = change.key
    return change.value is not None and str(key["c"]) in (str(END), str({"unscaled": bytes([END]), "scale": 0}))

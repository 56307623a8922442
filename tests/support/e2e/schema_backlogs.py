"""Statements that change tables, played while the job runs and while it stands still, and what comes of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from dev.local_stack.clients.history import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.cql import CqlClient

QUIET_SECONDS = 12.0
MOST_SECONDS = 240.0
LEAST_EVENTS = 50  # of all stories
KEPT = ("cause", "row_sequence", "snapshot", "incomplete", "empty")


class Story(NamedTuple):
    """Rounds of statements; `$t` is the table. Between two rounds the publisher reads and sends."""

    rounds: tuple[tuple[str, ...], ...]


ADD_AND_DROP = Story(
    (
        ("CREATE TABLE $t (p int PRIMARY KEY, a int, x int) WITH cdc = true",),
        (
            "INSERT INTO $t (p, a, x) VALUES (1, 1, 1)",
            "INSERT INTO $t (p, x) VALUES (2, 2)",
            "UPDATE $t SET x = 3 WHERE p = 3",
        ),
        ("ALTER TABLE $t DROP x",),
        ("UPDATE $t SET a = 5 WHERE p = 1",),
    )
)
STORIES = {
    "a column dropped": ADD_AND_DROP,
    "a column added": Story(
        (
            ("CREATE TABLE $t (p int PRIMARY KEY, a int) WITH cdc = true",),
            ("INSERT INTO $t (p, a) VALUES (1, 1)",),
            ("ALTER TABLE $t ADD y list<int>",),
            ("UPDATE $t SET y = [1, 2] WHERE p = 1", "UPDATE $t SET y = [1, 2] WHERE p = 1"),
        )
    ),
    "a column dropped and added again": Story(
        (
            ("CREATE TABLE $t (p int PRIMARY KEY, a int, x int) WITH cdc = true",),
            ("INSERT INTO $t (p, a, x) VALUES (1, 1, 1)", "UPDATE $t SET x = 2 WHERE p = 2"),
            ("ALTER TABLE $t DROP x",),
            ("UPDATE $t SET a = 3 WHERE p = 1",),
            ("ALTER TABLE $t ADD x int",),
            ("UPDATE $t SET x = 4 WHERE p = 1", "UPDATE $t SET x = 5 WHERE p = 2"),
            ("ALTER TABLE $t DROP x",),
            ("UPDATE $t SET a = 6 WHERE p = 1",),
        )
    ),
    "a column dropped at a time": Story(
        (
            ("CREATE TABLE $t (p int PRIMARY KEY, a int, x int) WITH cdc = true",),
            (
                "INSERT INTO $t (p, a, x) VALUES (1, 1, 1) USING TIMESTAMP 100",
                "INSERT INTO $t (p, a, x) VALUES (2, 2, 2) USING TIMESTAMP 300",
            ),
            ("ALTER TABLE $t DROP x USING TIMESTAMP 200",),
            ("UPDATE $t SET a = 3 WHERE p = 1", "UPDATE $t SET a = 4 WHERE p = 2"),
            ("ALTER TABLE $t ADD x int",),
            ("UPDATE $t SET a = 5 WHERE p = 2",),
        )
    ),
    "a key column renamed": Story(
        (
            ("CREATE TABLE $t (p int, c int, v text, PRIMARY KEY (p, c)) WITH cdc = true",),
            ("INSERT INTO $t (p, c, v) VALUES (1, 1, 'a')", "INSERT INTO $t (p, c, v) VALUES (1, 2, 'b')"),
            ("ALTER TABLE $t RENAME c TO cc",),
            ("UPDATE $t SET v = 'c' WHERE p = 1 AND cc = 1", "DELETE FROM $t WHERE p = 1 AND cc = 2"),
            ("ALTER TABLE $t ADD w int",),
            ("UPDATE $t SET w = 1 WHERE p = 1 AND cc = 1",),
        )
    ),
    "a static column added and dropped": Story(
        (
            ("CREATE TABLE $t (p int, c int, v text, PRIMARY KEY (p, c)) WITH cdc = true",),
            ("INSERT INTO $t (p, c, v) VALUES (1, 1, 'a')",),
            ("ALTER TABLE $t ADD s text STATIC",),
            ("UPDATE $t SET s = 'x' WHERE p = 1", "UPDATE $t SET s = 'y' WHERE p = 2"),
            ("ALTER TABLE $t DROP s",),
            ("UPDATE $t SET v = 'b' WHERE p = 1 AND c = 1",),
        )
    ),
    "a type altered": Story(
        (
            ("CREATE TYPE $k.$n_t (x int, y int)",),
            ("CREATE TABLE $t (p int PRIMARY KEY, f frozen<$n_t>, m $n_t) WITH cdc = true",),
            ("INSERT INTO $t (p, f, m) VALUES (1, {x: 1, y: 1}, {x: 1})",),
            ("ALTER TYPE $k.$n_t ADD z int",),
            ("UPDATE $t SET f = {x: 1, y: 1, z: null} WHERE p = 1", "UPDATE $t SET m.z = 3 WHERE p = 1"),
            ("ALTER TYPE $k.$n_t RENAME y TO w",),
            ("UPDATE $t SET m.w = 4 WHERE p = 1",),
        )
    ),
    "cdc off and on": Story(
        (
            ("CREATE TABLE $t (p int PRIMARY KEY, a int, x int) WITH cdc = true",),
            ("INSERT INTO $t (p, a, x) VALUES (1, 1, 1)",),
            ("ALTER TABLE $t WITH cdc = false",),
            ("ALTER TABLE $t DROP x",),
            ("ALTER TABLE $t WITH cdc = true",),
            ("UPDATE $t SET a = 2 WHERE p = 1",),
        )
    ),
    "a table truncated": Story(
        (
            ("CREATE TABLE $t (p int PRIMARY KEY, a int, x int) WITH cdc = true",),
            ("INSERT INTO $t (p, a, x) VALUES (1, 1, 1)",),
            ("ALTER TABLE $t DROP x",),
            ("UPDATE $t SET a = 2 WHERE p = 1",),
            ("TRUNCATE $t",),
            ("INSERT INTO $t (p, a) VALUES (1, 3)",),
        )
    ),
    "a table dropped and created": Story(
        (
            ("CREATE TABLE $t (p int PRIMARY KEY, a int, x int) WITH cdc = true",),
            ("INSERT INTO $t (p, a, x) VALUES (1, 1, 1)", "INSERT INTO $t (p, a, x) VALUES (2, 2, 2)"),
            ("ALTER TABLE $t DROP x",),
            ("UPDATE $t SET a = 3 WHERE p = 1",),
            ("DROP TABLE $t",),
            ("CREATE TABLE $t (p int PRIMARY KEY, b text) WITH cdc = true",),
            ("INSERT INTO $t (p, b) VALUES (1, 'new')",),
        )
    ),
    "many in a row": Story(
        (
            ("CREATE TABLE $t (p int, c int, a int, PRIMARY KEY (p, c)) WITH cdc = true",),
            ("INSERT INTO $t (p, c, a) VALUES (1, 1, 1)",),
            ("ALTER TABLE $t ADD x int",),
            ("UPDATE $t SET x = 2 WHERE p = 1 AND c = 1", "UPDATE $t SET x = 2 WHERE p = 2 AND c = 2"),
            ("ALTER TABLE $t RENAME c TO cc",),
            ("UPDATE $t SET x = 3 WHERE p = 1 AND cc = 1",),
            ("ALTER TABLE $t DROP x",),
            ("UPDATE $t SET a = 4 WHERE p = 1 AND cc = 1",),
            ("ALTER TABLE $t ADD x int",),
            ("UPDATE $t SET x = 5 WHERE p = 1 AND cc = 1",),
        )
    ),
}


def play(client: CqlClient, keyspace: str, pause: float) -> None:
    """Play all stories at once, round by round, each in a table of its own."""
    client.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    client.execute(f"USE {keyspace}")
    for number in range(max(len(story.rounds) for story in STORIES.values())):
        for name, story in STORIES.items():
            for statement in story.rounds[number] if number < len(story.rounds) else ():
                text = statement.replace("$t", f"{keyspace}.{table_of(name)}").replace("$k", keyspace)
                client.execute(text.replace("$n", table_of(name)))
        time.sleep(pause)


def table_of(story: str) -> str:
    return story.replace(" ", "_")


def read_until_quiet(reader: ChangeReader, count: int = LEAST_EVENTS) -> list[Change]:
    """All changes, until at least so many have come and no more come for a while."""
    found: list[Change] = []
    last, deadline = time.monotonic(), time.monotonic() + MOST_SECONDS
    while time.monotonic() - last < QUIET_SECONDS or len(found) < count:
        came = [change for change in reader.poll(0.2) if change.value is not None]
        found += came
        last = time.monotonic() if came else last
        if time.monotonic() > deadline:
            break
    return found


def events_by_key(changes: Iterable[Change], story: str) -> dict[Any, list[Any]]:
    """Return the changes of a story, by the topic's version and the key: all of each event but times and places.

    The keys of a dropped table end with the message about the DROP or with the first one of the table that replaces it:
    which of them is first in a raw partition does not depend on the job. So both causes count as one.
    """
    events: dict[Any, list[Any]] = {}
    for change in changes:
        table, _, version = change.table.partition("-")
        if table == table_of(story) and change.value is not None:
            source = {name: change.value["source"][name] for name in KEPT}
            if change.value["op"] == "d" and source["cause"] == "drop":
                source["cause"] = "schema"
            event = (change.value["op"], change.value["before"], change.value["after"], source)
            events.setdefault((version, frozen(change.key)), []).append(event)
    return events

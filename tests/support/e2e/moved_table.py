"""A table whose topic the registry changes while it is written to: the writes, and what readers of its topics have."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from dev.local_stack.clients import cql
from dev.local_stack.clients.change import Change
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.history import History, chain_problems, key_of
from dev.local_stack.servers.addresses import Servers

KEYSPACE, TABLE = "moved", "people"
PARTITIONS = range(8)
ROWS = 250  # of each Cassandra partition, at first
END = 10_000  # the clusterings from here on are marks
PII_PREFIX = "pii-"
_PAUSE_SECONDS = 0.005


class Writer(threading.Thread):
    """Inserts, updates and deletes until it is stopped; `count`: how many writes."""

    def __init__(self, servers: Servers) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self.error: Exception | None = None
        self._servers = servers
        self._over = threading.Event()

    def run(self) -> None:
        chance = random.Random(7)
        try:
            with cql.connect(self._servers.cassandra_hosts, self._servers.cassandra_port) as client:
                while not self._over.wait(_PAUSE_SECONDS):
                    p, c = chance.choice(PARTITIONS), chance.randrange(ROWS)
                    client.execute(chance.choices(_STATEMENTS, (60, 30, 9, 1))[0].format(p=p, c=c, n=self.count))
                    self.count += 1
        except Exception as error:  # noqa: BLE001 - `end` raises it
            self.error = error

    def end(self) -> None:
        self._over.set()
        self.join()
        if self.error is not None:
            raise self.error


_STATEMENTS = (
    f"UPDATE {KEYSPACE}.{TABLE} SET n = {{n}}, name = 'name {{n}}' WHERE p = {{p}} AND c = {{c}}",
    f"INSERT INTO {KEYSPACE}.{TABLE} (p, c, n) VALUES ({{p}}, {{c}}, {{n}})",
    f"DELETE FROM {KEYSPACE}.{TABLE} WHERE p = {{p}} AND c = {{c}}",
    f"UPDATE {KEYSPACE}.{TABLE} SET st = 'static {{n}}' WHERE p = {{p}}",
)


@dataclass
class Topics:
    """All changes of the table by topic, as they have come so far."""

    servers: Servers
    changes: dict[str, list[Change]] = field(default_factory=dict)
    _readers: dict[str, ChangeReader] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for prefix in ("", PII_PREFIX):
            self._readers[prefix] = ChangeReader(
                self.servers.kafka,
                self.servers.registry,
                prefix + self.servers.topic_prefix,
                lambda keyspace, table: keyspace == KEYSPACE and table.partition("-")[0] == TABLE,
            )

    def poll(self) -> None:
        for prefix, reader in self._readers.items():
            for change in reader.poll(0.05):
                if change.value is not None:
                    topic = f"{prefix}{self.servers.topic_prefix}.{change.keyspace}.{change.table}"
                    self.changes.setdefault(topic, []).append(replace(change, table=TABLE))

    def of(self, topic: str) -> list[Change]:
        return self.changes.get(topic, [])

    def moved(self, topic: str) -> list[dict[str, Any]]:
        """The envelopes of the rows that ended or began there because they moved."""
        values = [change.value for change in self.of(topic) if change.value is not None]
        return [value for value in values if value["source"]["cause"] == "moved"]

    def wait_for_marks(self, topic: str, number: int, seconds: float) -> None:
        """Wait until each Cassandra partition's mark of this number has come."""
        deadline = time.monotonic() + seconds
        wanted = {(p, END + number) for p in PARTITIONS}
        while not wanted <= {tuple(change.key.values()) for change in self.of(topic)}:
            assert time.monotonic() < deadline, {name: len(found) for name, found in self.changes.items()}
            self.poll()

    def history(self, topic: str) -> History:
        found = History()
        found.add(self.of(topic))
        return found

    def problems(self) -> list[str]:
        """Return the errors in the chain of any key over all topics: gaps, repeats, images that do not follow."""
        keys: dict[object, list[Change]] = {}
        for changes in self.changes.values():
            for change in changes:
                keys.setdefault(key_of(change), []).append(change)
        return [
            f"{key}: {problem}"
            for key, changes in keys.items()
            for problem in chain_problems(sorted(changes, key=_sequence))
        ]

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()


def _sequence(change: Change) -> int:
    assert change.value is not None
    sequence: int = change.value["source"]["row_sequence"]
    return sequence

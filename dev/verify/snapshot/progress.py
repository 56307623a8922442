"""Follow how far the snapshots of tables are, as running publishers say."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

from dev.local_stack.process.network import LOCALHOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Program

MARKS = 50  # rows of a table; every node has some of them
SNAPSHOT_SECONDS = 3600.0


class Snapshots:
    """Ask the publishers for the snapshots of a keyspace's tables."""

    def __init__(self, publishers: Sequence[Program], names: Sequence[str]) -> None:
        self._publishers = publishers
        self._names = set(names)

    def are_over(self) -> bool:
        return all(self._over_at(publisher) >= self._names for publisher in self._publishers)

    def states(self) -> Counter[str]:
        return Counter(state for publisher in self._publishers for _, state in self._shown(publisher))

    def _over_at(self, publisher: Program) -> set[str]:
        return {name for name, state in self._shown(publisher) if state in {"ended", "given_up"}}

    def _shown(self, publisher: Program) -> list[tuple[str, str]]:
        return [(snapshot["table"], snapshot["state"]) for snapshot in status_of(publisher).get("snapshots", ())]


def status_of(publisher: Program) -> dict[str, Any]:
    """Empty if it has just been killed."""
    url = f"http://{LOCALHOST}:{publisher.settings['publisher.operations_port']}/status"
    try:
        with urlopen(url, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (URLError, OSError, ValueError):
        return {}


def pass_present_log(
    client: CqlClient, keyspace: str, publishers: Sequence[Program], push: Callable[[], None] = lambda: None
) -> None:
    """Wait until every publisher is past what was written so far. The log contains it, and shows it with the next
    change. `push`: as Run's.
    """
    client.execute(f"CREATE TABLE {keyspace}.mark (p int PRIMARY KEY) WITH cdc = true")
    before = [int(status_of(publisher).get("messages", 0)) for publisher in publishers]
    deadline = time.monotonic() + SNAPSHOT_SECONDS
    left = list(zip(publishers, before, strict=True))
    while left := [(program, count) for program, count in left if int(status_of(program).get("messages", 0)) <= count]:
        assert time.monotonic() < deadline, "the publishers do not get past the log of now"
        for number in range(MARKS):
            client.execute_at_all(f"INSERT INTO {keyspace}.mark (p) VALUES ({number})")
        push()
        time.sleep(1)

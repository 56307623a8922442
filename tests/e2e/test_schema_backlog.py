"""The history does not depend on lag: a job that is behind sends what it sends when it never is, event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.change_reader import ChangeReader
from tests.support.e2e.schema_backlogs import STORIES, events_by_key, play, read_until_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]  # the first test plays all stories

PAUSE = 5.0  # more than a heartbeat, and a batch of the job


class Histories(NamedTuple):
    live: list[Change]
    behind: list[Change]


@pytest.fixture(scope="module")
def histories(stack: Stack, client: CqlClient) -> Iterator[Histories]:
    with (
        ChangeReader.of_keyspace(stack.servers, "never_behind") as live,
        ChangeReader.of_keyspace(stack.servers, "far_behind") as behind,
    ):
        play(client, "never_behind", PAUSE)
        expected = read_until_quiet(live)
        stack.materializer.stop()
        play(client, "far_behind", PAUSE)
        stack.materializer.start()
        yield Histories(expected, read_until_quiet(behind, len(expected)))
    for keyspace in ("never_behind", "far_behind"):
        client.execute(f"DROP KEYSPACE {keyspace}")


@pytest.mark.parametrize("story", STORIES)
def test_a_backlog_gives_the_same_history(histories: Histories, story: str) -> None:
    live, behind = (events_by_key(changes, story) for changes in histories)
    assert live, "nothing came"
    assert behind == live


def test_what_was_written_before_a_drop_comes_out(histories: Histories) -> None:
    found = events_by_key(histories.behind, "a column dropped")
    events = {
        key[1][0][1]: [(op, _without_key(before), _without_key(after)) for op, before, after, _ in events]
        for key, events in found.items()
    }
    assert events == {
        1: [
            ("c", None, {"a": 1, "x": 1}),
            ("u", {"a": 1, "x": 1}, {"a": 1, "x": None}),
            ("u", {"a": 1}, {"a": 5}),
        ],
        2: [("c", None, {"a": None, "x": 2}), ("u", {"a": None, "x": 2}, {"a": None, "x": None})],
        3: [("c", None, {"a": None, "x": 3}), ("d", {"a": None, "x": 3}, None)],
    }


def _without_key(row: dict[str, object] | None) -> dict[str, object] | None:
    return None if row is None else {name: value for name, value in row.items() if name != "p"}

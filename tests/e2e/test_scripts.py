"""CQL, then the messages that it must give: the scripts of tests/e2e/scripts, on one stack, side by side."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.history import History
from dev.local_stack.clients.render import change_json
from tests.support.e2e.newest_columns import by_newest_columns
from tests.support.e2e.script import Script, read_scripts

if TYPE_CHECKING:
    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]  # the first test plays all of them

STEP_SECONDS = 240.0
QUIET_SECONDS = 4.0  # after a statement that must cause no message
SCRIPTS = read_scripts()


class Player:
    """Plays one script, a step whenever what must come of the step before has come."""

    def __init__(self, client: CqlClient, script: Script) -> None:
        self.history = History()
        self.problem = ""
        self.last_came = time.monotonic()
        self._client = client
        self._script = script
        self._steps = iter(script.steps)
        self._wanted: list[str] = []
        self._came: list[str] = []
        self._doing = ""
        self._since = self._not_before = 0.0
        self.is_done = False
        client.execute(
            f"CREATE KEYSPACE {script.keyspace} WITH replication = "
            "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        )

    def take(self, changes: list[Change]) -> None:
        mine = [change for change in changes if change.keyspace == self._script.keyspace]
        self.history.add(mine)
        self._came += [canonical(change) for change in mine if change.value is not None]
        self.last_came = time.monotonic() if mine else self.last_came

    def go_on(self) -> None:
        """Run what can be run now."""
        while not self.is_done and time.monotonic() >= self._not_before and len(self._came) >= len(self._wanted):
            self._check()
            step = None if self.problem else next(self._steps, None)
            if step is None:
                self._end()
                return
            self._doing = step.statement or " ".join(step.prose)
            if step.statement:
                self._client.execute(f"USE {self._script.keyspace}")
                self._client.execute(step.statement)
            self._came, self._wanted = [], [json.dumps(message, sort_keys=True) for message in step.messages]
            self._since = time.monotonic()
            self._not_before = self._since + QUIET_SECONDS if step.is_awaited_in_vain else 0.0
        if time.monotonic() - self._since > STEP_SECONDS:
            self._check()
            self._end()

    def _end(self) -> None:
        """Tables that are no longer there get no heartbeats, which cost time."""
        self.is_done = True
        self._client.execute(f"DROP KEYSPACE {self._script.keyspace}")

    def finish(self) -> None:
        """Nothing more may have come."""
        if not self.problem:
            self._check()
        self.problem = self.problem or "\n".join(by_newest_columns(self.history).problems())

    def _check(self) -> None:
        if sorted(self._came) != sorted(self._wanted):
            came, wanted = ("\n  ".join(sorted(lines)) for lines in (self._came, self._wanted))
            self.problem = f"{self._doing}\nshould give\n  {wanted}\nbut gave\n  {came}"


def canonical(change: Change) -> str:
    """A message as the scripts have it: `source` is left out except for what has expired."""
    said: dict[str, Any] = json.loads(change_json(change))
    cause = said.pop("source")["cause"]
    del said["table"]
    return json.dumps(said | ({"cause": cause} if cause != "write" else {}), sort_keys=True)


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, client: CqlClient, servers: Servers) -> dict[str, Player]:
    """Every script with a selected test, played to its end."""
    selected = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    players = {script.name: Player(client, script) for script in SCRIPTS if script.name in selected}
    keyspaces = {script.keyspace for script in SCRIPTS}
    with ChangeReader(
        servers.kafka, servers.registry, servers.topic_prefix, lambda keyspace, _table: keyspace in keyspaces
    ) as reader:
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < QUIET_SECONDS:
            changes = reader.poll(0.1)
            for player in players.values():
                player.take(changes)
                player.go_on()
            if changes or not all(player.is_done for player in players.values()):
                quiet_since = time.monotonic()
    for player in players.values():
        player.finish()
    return players


@pytest.mark.parametrize("name", [script.name for script in SCRIPTS])
def test_a_script_gives_its_messages(name: str, played: dict[str, Player]) -> None:
    assert played[name].problem == ""

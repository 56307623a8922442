"""A small `make verify WHAT=model`: every kind of write over tables of every shape ends in what SELECT shows.

Two seeds. Mutations that come again, from another node or from the same one, give no message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from dev.verify.model.check import SINGLE, Run, Seed, check, programs_of
from dev.verify.model.duplicates import copy_as_another_replica, publish_anew, unexpected

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.stack import Stack

pytestmark = pytest.mark.servers

STATEMENTS = 600
AGAIN_STATEMENTS = 500
PAUSE_SECONDS = 3.0
LEAST_AGAIN = 100  # raw messages


@pytest.mark.timeout(400)
def test_random_statements_end_in_what_select_shows(client: CqlClient, servers: Servers, stack: Stack) -> None:
    steady = Run(client, client, servers, "5.0", SINGLE)
    run = replace(steady, evolves=True, pause_seconds=PAUSE_SECONDS, programs=programs_of(stack))
    result = check(run, seed=11, statements=STATEMENTS)
    assert result.problems == []
    assert result.statements > STATEMENTS
    assert min(result.rows, result.changes, result.raw) > 100


@pytest.mark.exhaustive
@pytest.mark.timeout(400)
def test_what_comes_again_makes_no_message(client: CqlClient, servers: Servers, stack: Stack) -> None:
    """Uses tables that keep their schema: what was dropped or purged comes back if its writes do."""
    run = Run(client, client, servers, "5.0", SINGLE)
    result = check(run, 12, AGAIN_STATEMENTS, afterwards=lambda one: what_comes_of_duplicates(one, stack))
    assert result.problems == []


def what_comes_of_duplicates(one: Seed, stack: Stack) -> list[str]:
    """A problem for each change that comes of raw messages that come again: none may."""
    found = []
    for again in (lambda: copy_as_another_replica(one, stack.servers.kafka), lambda: publish_anew(stack)):
        before = one.raw.count()
        found += [f"again: {line}" for line in unexpected(one, again)]
        if one.raw.count() - before < LEAST_AGAIN:
            found.append("hardly anything has come again")
    return found + one.problems()[0]

"""One node, statements with rising timestamps: the messages of each key are the model's list, one for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.e2e.every_event import event_problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.cql import CqlClient

pytestmark = pytest.mark.servers

STATEMENTS = 5000


def test_every_statement_comes_out_one_for_one(client: CqlClient, open_reader: Callable[[str], ChangeReader]) -> None:
    assert event_problems(client, open_reader("every_event"), "every_event", seed=5, count=STATEMENTS) == []

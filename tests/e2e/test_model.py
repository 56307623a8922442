"""A small `make model`: every kind of write over tables of every shape ends in what SELECT shows, by one seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.check import SINGLE, Run, check

if TYPE_CHECKING:
    from local_stack.cql import CqlClient
    from local_stack.servers import Servers

pytestmark = pytest.mark.servers

STATEMENTS = 1500


@pytest.mark.timeout(400)
def test_random_statements_end_in_what_select_shows(client: CqlClient, servers: Servers) -> None:
    result = check(Run(client, client, servers, "5.0", SINGLE), seed=11, statements=STATEMENTS)
    assert result.problems == []
    assert result.statements > STATEMENTS
    assert min(result.rows, result.changes, result.raw) > 100

"""Schema changes within backlogs, and tables that cannot be published: the checks of `make verify WHAT=model`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.verify.model.backlog_check import Stopped, check_backlogs
from dev.verify.model.check import SINGLE, Run
from dev.verify.model.names_check import check_names

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]


@pytest.mark.timeout(1200)
def test_every_event_comes_though_the_job_was_stopped(client: CqlClient, servers: Servers, stack: Stack) -> None:
    run = Run(client, client, servers, "5.0", SINGLE, pause_seconds=2.0)
    for result in check_backlogs(run, Stopped(stack.materializer), [5, 6], 300, stack.check):
        assert result.problems == []
        assert min(result.backlogs) > 0
        assert result.events > 200


@pytest.mark.timeout(1200)
def test_tables_that_cannot_be_published_stop_no_other(client: CqlClient, servers: Servers, stack: Stack) -> None:
    result = check_names(Run(client, client, servers, "5.0", SINGLE), stack, 5, 10)
    assert result.problems == []
    assert result.bad == 6

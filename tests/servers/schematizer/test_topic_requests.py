"""The requests of `topics plan` and `topics apply` grow with what changes, and not with the topics that there are."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.schematizer.counted_requests import counted, run_apply, run_plan
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.topic_commands import TopicCommands, topic_commands
from tests.support.schematizer.topic_repository import write_topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

MORE = 9
OF_A_TOPIC = 5
"""Requests to the registry of a new topic: two schemas, its documentation, a producer and a consumer."""
LOG = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    running = Registry(tmp_path / "registry.db").start()
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture
def commands(kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path) -> TopicCommands:
    return topic_commands(tmp_path, kafka.bootstrap_servers, registry.url, topic_prefix)


def test_requests_grow_with_changes_alone(
    commands: TopicCommands, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    applies, plans = [], []
    for topics in (range(1), range(1, MORE + 1)):
        for number in topics:
            write_topic(commands.root, "staging", f"orders{number}")
        with counted(monkeypatch) as apply:
            run_apply(commands, "staging")
        with counted(monkeypatch) as plan:
            run_plan(commands, "staging")
        assert "0 to create, 0 to change, 0 to delete" in capsys.readouterr().out
        applies.append(apply)
        plans.append(plan)
    for counts in (*applies, *plans):
        LOG.info("to Kafka: %s, to the registry: %s", dict(counts.kafka), dict(counts.registry))
    one, many = plans
    assert one.kafka["DescribeConfigs"] >= 1, "requests are seen"
    assert (many.kafka, many.registry) == (one.kafka, one.registry)
    first, second = applies
    assert second.kafka - first.kafka <= Counter(DescribeConfigs=1), "nine are made by as many requests as one"
    assert second.registry.total() - first.registry.total() <= OF_A_TOPIC * (MORE - 1)

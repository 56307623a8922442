"""Ten topics of one job, one of which gets a message that is no Avro: the other nine are loaded on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from cdc_common.errors.codes import Code
from stream_runtime.worker.task import Assignment
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.job.worker_loop import open_loop
from warehouse.names import table_name
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cdc_common.errors.codes import CdcError
    from tests.support.warehouse.warehouse_run import WarehouseSetup

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

TOPICS = 10
MESSAGES = 60
SECONDS = 240.0


def test_the_others_are_loaded_on(make_setup: Callable[[str], WarehouseSetup], tmp_path: Path) -> None:
    setup = make_setup(f"duckdb:///{tmp_path}/w.duckdb")
    topics = [f"{setup.prefix}.shop.table{number}" for number in range(TOPICS)]
    for topic in topics:
        setup.make_topic(topic)
        setup.send(0, MESSAGES, topic)
    job = job_of(setup.settings(topics=[rf"{setup.prefix}\.shop\.table\d"]))
    planner, loop = TopicPlanner(job), open_loop(job)
    planner.check_settings()
    loader = open_loader(job.settings)
    errors: dict[str, CdcError] = {}

    def loaded(topic: str) -> int:
        state = loader.read_state(table_name(topic, "topics"))
        loader.connection.release()
        return 0 if state is None else sum(state.offsets.values())

    def run_until(ends: dict[str, int]) -> None:
        deadline = time.monotonic() + SECONDS
        while any(loaded(topic) < end for topic, end in ends.items()):
            assert time.monotonic() < deadline, (ends, errors)
            plan = planner.plan_batch()
            for result in loop.run_batch(plan, Assignment(tuple(plan.shares), MESSAGES, 0.0)):
                if result.error is not None:
                    errors[result.share.stream] = result.error

    try:
        run_until(dict.fromkeys(topics, MESSAGES))
        assert not errors
        bad, *others = topics
        before = {topic: loaded(topic) for topic in topics}
        producer = Producer({"bootstrap.servers": setup.bootstrap})
        producer.produce(bad, b"no Avro", b"no Avro", 0)
        producer.flush()
        for topic in topics:
            setup.send(MESSAGES, 2 * MESSAGES, topic)
        run_until({topic: before[topic] + MESSAGES for topic in others})
        assert {topic: error.code for topic, error in errors.items()} == {bad: Code.WAREHOUSE_MESSAGE}
        assert loaded(bad) < before[bad] + MESSAGES
    finally:
        loader.connection.close()
        loop.close()

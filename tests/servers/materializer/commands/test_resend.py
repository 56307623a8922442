"""A change topic that is deleted, and maybe created again, on a real broker: it is noticed, and `resend` heals it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.errors.codes import CdcError, Code
from materializer.commands.resend import resend_table
from materializer.job import planner as planner_module
from stream_runtime.kafka import Topics
from tests.support.materializer.reshard_run import Run
from tests.support.materializer.table_job import RAW_PARTITIONS, PatientPlanner, TableJob, job_settings

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
OTHER_COUNT = 1


@pytest.fixture
def run(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Run:
    job = TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path))
    return Run(job.with_settings(chunk_max_messages=25, snapshot_every_versions=3), seed=7)


def change_topic(run: Run) -> str:
    return f"{run.job.settings.kafka.topic_prefix}.shop.orders"


def delete(run: Run) -> None:
    admin = AdminClient({"bootstrap.servers": run.job.settings.kafka.bootstrap_servers})
    admin.delete_topics([change_topic(run)])[change_topic(run)].result()
    topics = Topics(run.job.settings.kafka)
    while change_topic(run) in topics.partition_counts():
        time.sleep(0.1)


def create(run: Run, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": run.job.settings.kafka.bootstrap_servers})
    admin.create_topics([NewTopic(change_topic(run), partitions, 1)])[change_topic(run)].result()


def resend(run: Run) -> list[str]:
    said: list[str] = []
    resend_table(run.job.settings, "shop.orders", is_confirmed=True, say=said.append)
    return said


def latest(changes: list[Any]) -> dict[tuple[int, int], Any]:
    shown = {}
    for change in changes:
        if change is not None:
            image = change["after"] or change["before"]
            shown[image["k"], image["c"]] = change["after"]
    return {key: after["a"] for key, after in shown.items() if after is not None}


def expected(run: Run) -> dict[tuple[int, int], Any]:
    written = {key: changes[-1].after for key, changes in run.expected.items()}
    return {key: value for key, value in written.items() if value is not None}


@pytest.mark.parametrize("partitions", [None, OTHER_COUNT])
def test_a_topic_deleted_while_the_job_was_down(run: Run, partitions: int | None) -> None:
    """None: the job itself creates the topic. Otherwise someone has, with another partition count."""
    run.send(80, RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    delete(run)
    if partitions is not None:
        create(run, partitions)
    run.send(20, RAW_PARTITIONS)
    errors = run.materialize(RAW_PARTITIONS)
    assert {error.code for error in errors} == {Code.CHANGE_TOPIC_RECREATED}
    assert "resend" in errors[0].fix
    job = run.job
    if partitions is not None:
        kafka = job.settings.kafka.model_copy(update={"change_partitions": partitions})
        job = job._replace(settings=job.settings.model_copy(update={"kafka": kafka}))
    assert job.changes() == []  # nothing was sent into the topic
    said: list[str] = []
    resend_table(run.job.settings, "shop.orders", is_confirmed=False, say=said.append)
    assert said[-1].startswith("Nothing was done")
    assert run.materialize(RAW_PARTITIONS) != []
    resend(run)
    assert run.materialize(RAW_PARTITIONS) == []
    changes = job.changes()
    assert latest(changes) == expected(run)
    sequences: dict[Any, int] = {}
    for change in changes:
        if change is not None:
            image, source = change["after"] or change["before"], change["source"]
            key = image["k"], image["c"]
            assert source["cause"] == "resent" or key in sequences or change["before"] is None
            assert source["row_sequence"] == sequences.get(key, source["row_sequence"] - 1) + 1
            sequences[key] = source["row_sequence"]
    resent = [change for change in changes if change is not None and change["source"]["cause"] == "resent"]
    assert {change["op"] for change in resent} == {"r"}
    assert len(resent) == len({(change["after"]["k"], change["after"]["c"]) for change in resent})


def test_a_topic_deleted_while_the_job_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's next plan has the new topic's id, also if the topic was created again between two looks."""
    monkeypatch.setattr(planner_module, "_CHANGE_TOPICS_SECONDS", 0.0)
    planner = PatientPlanner(run.job.settings, run.job.registry)
    raw_topic = run.topic

    def planned_id() -> str:
        (topic,) = planner.plan_batch().topics[raw_topic].change_topics
        assert topic is not None
        return topic.topic_id

    first = planned_id()
    assert first
    assert planned_id() == first
    delete(run)
    deadline = time.monotonic() + 60
    while planned_id() == first:  # it is created, with the settings' partitions
        assert time.monotonic() < deadline
    assert Topics(run.job.settings.kafka).partition_counts()[change_topic(run)] == 3
    second = planned_id()
    delete(run)
    create(run, OTHER_COUNT)
    while planned_id() == second:
        assert time.monotonic() < deadline
    (topic,) = planner.plan_batch().topics[raw_topic].change_topics
    assert topic is not None
    assert topic.partitions == OTHER_COUNT


def test_resend_of_a_table_without_a_topic_is_refused(run: Run) -> None:
    with pytest.raises(CdcError, match="No change topic"):
        resend(run)

"""Two Cassandra clusters on one Kafka and registry. They have the same tables, with the same ids, as a clone has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from stream_runtime.kafka import GroupPositions
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import PatientPlanner, TableJob, job_settings

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
CLUSTERS = ("first", "second")
WRITES = 3


def write(job: TableJob, text: str, number: int) -> None:
    """The same row of the same partition in each cluster, with a text of its own."""
    row = Row((int_bytes(5),), {"a": Cell(number, text.encode())}, LivenessInfo(number))
    job.send(raw_record(int_bytes(1), "row", row, offset=number))


def test_each_cluster_has_topics_positions_and_states_of_its_own(
    kafka: KafkaBroker, topic_prefix: str, tmp_path: Path
) -> None:
    """Only the prefix differs: the jobs have one registry, group, checkpoint location and folder for local states."""
    registry, jobs = MemoryRegistry(), {}
    for cluster in CLUSTERS:
        settings = job_settings(kafka.bootstrap_servers, f"{topic_prefix}-{cluster}", tmp_path)
        jobs[cluster] = TableJob.start(settings, registry, cluster).with_settings(group_id=topic_prefix)
    for number in range(1, WRITES + 1):
        for cluster, job in jobs.items():
            write(job, f"{cluster} {number}", number)
            result = job.run()
            assert result.error is None, result.error
            assert result.report is not None
            assert (result.report.first, result.report.end) == (number - 1, number)
    for cluster, job in jobs.items():
        changes = job.changes()
        assert [change["after"]["a"] for change in changes] == [f"{cluster} {number + 1}" for number in range(WRITES)]
        assert [change["before"] and change["before"]["a"] for change in changes][1:] == [
            f"{cluster} {number}" for number in range(1, WRITES)
        ]
        assert {change["source"]["cluster"] for change in changes} == {cluster}
        assert (tmp_path / "checkpoint" / topic_prefix / str(job.raw) / "changelogs").is_dir()
        assert (tmp_path / "state" / topic_prefix / str(job.raw)).is_dir()
        position = GroupPositions(job.settings.kafka, topic_prefix).read([job.raw])[job.raw]
        assert position is not None
        assert position.offset == WRITES
    assert len(registry.subjects) == 4
    assert all(f"{topic_prefix}-{cluster}.shop.orders-key" in registry.subjects for cluster in CLUSTERS)


def test_a_second_job_under_a_prefix_is_refused(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    """It would publish all changes once more."""
    job = TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path / "first"))
    write(job, "once", 1)
    assert job.run().error is None
    other = job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path / "second")
    second = job._replace(settings=other).with_settings(group_id="another")
    with pytest.raises(CdcError) as raised:
        PatientPlanner(second.settings, second.registry).plan_batch()
    assert raised.value.code is Code.STATE_MISMATCH
    assert f"{topic_prefix}.shop.orders has messages" in raised.value.problem
    assert "one job for each kafka.topic_prefix" in raised.value.fix
    assert len(job.changes()) == 1
    write(job, "twice", 2)
    assert job.run().error is None  # the first one goes on
    assert len(job.changes()) == 2

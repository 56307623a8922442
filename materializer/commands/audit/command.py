"""The command `cassandra-materializer audit`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import UUID

from cdc_common.clients.cassandra import connect
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import raw_topic
from materializer.commands.audit.audit import Audit
from materializer.commands.audit.plan import AuditOptions, AuditPlan
from materializer.commands.audit.progress import Progress, ProgressFile
from materializer.commands.audit.repair import Repair
from materializer.commands.audit.report import Report
from materializer.commands.audit.states import delete_local_stores
from materializer.commands.stored_partitions import read_positions
from materializer.errors import RAW_FAULTS, no_raw_topic
from materializer.planning.table_schemas import read_table_schemas
from stream_runtime.exactly_once.position import check_topic
from stream_runtime.kafka import Topics
from stream_runtime.query.spark_tasks import spark_tasks
from stream_runtime.state.checkpoint_location import object_store

if TYPE_CHECKING:
    from materializer.planning.plan import TableSchema
    from materializer.settings import Settings

EQUAL, DIFFERENT, NOT_AUDITED = 0, 1, 2
_PARTITIONER = "org.apache.cassandra.dht.Murmur3Partitioner"


def audit_table(settings: Settings, table: str, options: AuditOptions, *, as_json: bool, restart: bool) -> int:
    """Audit `keyspace.table`, and print what is found: the exit status. CdcError if it cannot be audited."""
    keyspace, _, name = table.partition(".")
    schemas = read_table_schemas(settings.kafka).for_table((keyspace, name))
    topic = raw_topic(settings.kafka.topic_prefix, keyspace, name)
    topics = Topics(settings.kafka)
    counts = topics.partition_counts()
    if not schemas or topic not in counts:
        raise no_raw_topic(topic, counts)
    shape = topics.shapes([topic])[topic]
    release = _check_cassandra(settings, keyspace, name, schemas[-1])
    plan = AuditPlan(settings, topic, shape.partitions, schemas, schemas[-1].table_id, release, options)
    positions = read_positions(settings, plan.all_raw_partitions())
    if not any(positions.values()):
        raise CdcError(Code.STATE_MISMATCH, f"The group has no offset for {topic}.", "Set group_id to the job's group.")
    for raw_partition, position in positions.items():
        if position is not None:
            check_topic(position, shape, raw_partition, RAW_FAULTS)
    file = ProgressFile(object_store(settings.materializer), settings.materializer.group_id, topic)
    report = Report(plan.table(), as_json=as_json)
    progress = _begin(file, plan, report, restart=restart)
    _run(plan, file, report, progress)
    file.delete()
    report.summary(progress, is_repaired=options.repair)
    return exit_status(progress)


def exit_status(progress: Progress) -> int:
    """The exit status of an audit that has ended."""
    if progress.differences:
        return DIFFERENT
    return NOT_AUDITED if progress.unread else EQUAL


def _run(plan: AuditPlan, file: ProgressFile, report: Report, progress: Progress) -> None:
    try:
        with spark_tasks(plan.settings.materializer) as tasks:
            Audit(plan, tasks, file, report).run(progress)
            if plan.options.repair and progress.differing:
                progress.replaced = Repair(plan, tasks, report).run(progress.differing)
            list(tasks.run(delete_local_stores, [plan.settings.materializer] * tasks.parallelism))
    except KeyboardInterrupt:
        report.say("Stopped: run the same command again to continue after the last slice that was compared.")
        raise SystemExit(NOT_AUDITED) from None


def _check_cassandra(settings: Settings, keyspace: str, name: str, schema: TableSchema) -> str:
    """Cassandra's release. CdcError if its tokens have no order, or its table is another one."""
    with connect(settings.cassandra) as client:
        local = client.rows("SELECT partitioner, release_version FROM system.local")[0]
        found = client.rows(
            "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s", (keyspace, name)
        )
    if local["partitioner"] != _PARTITIONER:
        raise CdcError(
            Code.NOT_SUPPORTED,
            f"The cluster has the partitioner {local['partitioner']}.",
            f"Only tables under {_PARTITIONER} can be audited.",
        )
    if not found or found[0]["id"] != UUID(bytes=schema.table_id):
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The table {keyspace}.{name} in Cassandra is not the newest one that the tables topic has.",
            "It was created or dropped a moment ago: wait until the publishers have read the statement, and check that "
            "they run.",
        )
    return str(local["release_version"])


def _begin(file: ProgressFile, plan: AuditPlan, report: Report, *, restart: bool) -> Progress:
    """The progress of an audit that was stopped, or a new one."""
    table_id, options = plan.table_id.hex(), plan.options
    found = None if restart else file.read()
    if found is None:
        return Progress(table_id, options.consistency, options.slices, time.time_ns() // 1000)
    if (found.table_id, found.consistency, found.slices) != (table_id, options.consistency, options.slices):
        raise CdcError(
            Code.CONFIG_INVALID,
            f"An audit with --consistency {found.consistency} --slices {found.slices} was stopped.",
            "Continue it with the same flags, or start over with --restart.",
        )
    report.say(f"Continuing: {len(found.done)} of {found.slices} slices are compared.")
    return found

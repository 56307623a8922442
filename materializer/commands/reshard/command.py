"""The command `cassandra-materializer state reshard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import CdcError, Code
from materializer.commands.reshard.reshard import Reshard
from materializer.commands.reshard.survey import read_raw_topic, survey_topic
from materializer.commands.stored_partitions import read_positions
from materializer.errors import RAW_FAULTS
from materializer.job.planner import Planner
from stream_runtime.kafka import command_errors

if TYPE_CHECKING:
    from materializer.settings import Settings

_PATIENCE_SECONDS = 60.0


def reshard_state(settings: Settings, table: str, *, dry_run: bool, in_spark: bool = False) -> None:
    """Reshard the state of `keyspace.table`, in this process or in Spark; or print what that would do."""
    topic = read_raw_topic(settings.kafka, f"{settings.kafka.topic_prefix}.raw.{table}")  # an error before any change
    if dry_run:
        raw_partitions = [topic.raw_partition(number) for number in topic.bounds]
        for line in survey_topic(settings.kafka, topic, read_positions(settings, raw_partitions)).describe():
            click.echo(line)
        return
    with RegistryClient(settings.registry) as registry:
        planner = Planner(settings, registry, _PATIENCE_SECONDS, must_fit=False)
        plan = planner.plan_batch()
    if topic.name in planner.errors:
        raise planner.errors[topic.name]
    if topic.name not in plan.topics:
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The tables topic holds no schema of {table}.",
            "Start a publisher: it sends the schemas that it knows.",
        )
    with command_errors(f"reshard {topic.name}", RAW_FAULTS):
        if not in_spark:
            Reshard(plan, topic.name, click.echo).reshard_topic()
            return
        from stream_runtime.query.spark_tasks import spark_tasks  # noqa: PLC0415 - without it, no Spark is needed

        with spark_tasks(settings.materializer) as tasks:
            Reshard(plan, topic.name, click.echo, tasks).reshard_topic()

"""`cassandra-archive plan`: which topics are archived into which tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.job.plan import list_shares
from archive.job.planner import TopicPlanner
from archive.job.run import job_of
from cdc_common.errors.codes import CdcError
from stream_runtime.kafka import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archive.settings import Settings


def print_plan(settings: Settings) -> None:
    """Print a line for each topic. CdcError."""
    for line in plan_lines(settings):
        click.echo(line)


def plan_lines(settings: Settings) -> Iterator[str]:
    """A line for each topic. CdcError."""
    own = settings.archive
    planner = TopicPlanner(job_of(settings))
    topics = planner.find_topics()
    for topic, shape in Topics(settings.kafka).each_shape(topics).items():
        if isinstance(shape, CdcError):
            yield f"{topic}: {shape}"
            continue
        shares = len(list_shares(topic, shape.partitions, own.partitions_per_share))
        made = planner.definition_of(topic)
        how = f"{made.layout}, by {made.bucket}, {made.format}"
        yield f"{topic} → {made.table} ({how}): {shape.partitions} partitions, {shares} shares"
    if not topics:
        yield "no topic matches archive.topics or is of archive.deployment"

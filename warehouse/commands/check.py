"""`cassandra-warehouse check`: whether the settings and the warehouse can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of

if TYPE_CHECKING:
    from warehouse.settings import Settings


def print_check(settings: Settings) -> None:
    """Check the settings as the job does at its start, and print how many topics would be loaded. CdcError."""
    planner = TopicPlanner(job_of(settings))
    planner.check_settings()
    click.echo(f"ok: {len(planner.find_topics()):,} topics")

"""The settings of a Spark job: of every one, and of one with a state."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 - pydantic needs it
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from cdc_common.settings.base import Table


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise PydanticCustomError("pattern", "It is no regular expression: {reason}", {"reason": str(error)}) from error
    return pattern


_Pattern = Annotated[str, AfterValidator(_check_pattern)]


class JobSettings(Table):
    """A streaming job whose workers read Kafka, and commit messages and positions in transactions."""

    group_id: str
    spark_master: Annotated[str, Field(description="Spark's master, unless spark-submit sets it.")] = (
        "local-cluster[2,1,1024]"
    )
    trigger_interval_ms: Annotated[
        int, Field(description="Time for which a worker collects messages before it processes them (ms).", ge=0)
    ] = 100
    task_seconds: Annotated[
        float,
        Field(
            description="Duration of a Spark task, and so of a micro-batch (s). A task ends between two transactions: "
            "earlier if the job stops, a partition fails or a schema changes, later while another task is not ready.",
            gt=0,
        ),
    ] = 5.0
    max_offsets_per_trigger: Annotated[
        int,
        Field(
            description="Maximum number of messages that all workers together have read and not yet processed.", ge=1
        ),
    ] = 100_000
    chunk_max_bytes: Annotated[
        int, Field(description="Maximum size of the messages that one transaction reads (bytes).", ge=1)
    ] = 16 * 1024 * 1024
    chunk_max_messages: Annotated[
        int, Field(description="Maximum number of messages that one transaction reads.", ge=1)
    ] = 10_000
    transaction_timeout_seconds: Annotated[
        float,
        Field(
            description="Time after which the brokers abort a transaction, which then runs again (s). A worker stops "
            "waiting for the checkpoint location after three quarters of it. At most the brokers' "
            "transaction.max.timeout.ms.",
            ge=2,
        ),
    ] = 120.0
    offset_refresh_hours: Annotated[
        float,
        Field(
            description="Time after which a position that has not moved is committed again (hours). It must be well "
            "below the brokers' offsets.retention.minutes, after which they delete the position.",
            gt=0,
        ),
    ] = 12.0
    operations_address: Annotated[
        str,
        Field(description="Address at which the driver serves /metrics, /health, /status and /retry.", min_length=1),
    ] = "127.0.0.1"
    operations_port: int


class ChosenTopicsSettings(JobSettings):
    """A Spark job whose topics are chosen by patterns."""

    topics: list[_Pattern] = Field(
        default=[], description="Topics of the job: names or regular expressions, which match whole names."
    )
    excluded_topics: list[_Pattern] = Field(
        default=[], description="Topics that are left out, written in the same way."
    )


class StatefulSettings(JobSettings):
    """A Spark job whose source partitions have states."""

    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 0
    checkpoint_location: Annotated[
        str, Field(description="Folder, or URI such as s3://bucket/folder, that all workers reach.", min_length=1)
    ]
    state_directory: Annotated[Path, Field(description="Folder of each worker for its local states.")]
    snapshot_every_versions: Annotated[
        int, Field(description="Number of changelogs after which a snapshot is stored.", ge=1)
    ] = 100
    changelog_retention_versions: Annotated[
        int, Field(description="Number of changelogs before the last snapshot that are kept.", ge=0)
    ] = 200
    changelog_retention_seconds: Annotated[
        float, Field(description="Time for which changelogs before the last snapshot are kept (s).", ge=0)
    ] = 3600.0
    restore_reads: Annotated[int, Field(description="Number of reads of a restore at a time.", ge=1)] = 8

"""The settings of a job with a state."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads annotations
from typing import Annotated

from pydantic import Field

from cdc_common.settings.job import JobSettings


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

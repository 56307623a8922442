"""The settings of `cassandra-joinery`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cdc_common.settings import shared
from stream_runtime.settings import StatefulSettings


class JoinerySettings(StatefulSettings):
    """The Spark job of `cassandra-joinery`. `file` defines its joins (docs/guides/joins.md)."""

    group_id: Annotated[
        str,
        Field(
            description="Name of the job. The committed offsets of its consumer group are the position of all joins, "
            "and those of `<group_id>.<join>` are the position of a join in its inputs.",
            min_length=1,
        ),
    ] = "cassandra-joinery"
    file: Annotated[Path, Field(description="Joins file (TOML), unless the command names one.")] = Path(
        "/etc/joins.toml"
    )
    checkpoint_location: Annotated[
        str, Field(description="Folder, or URI such as s3://bucket/folder, that all workers reach.", min_length=1)
    ] = "/var/lib/cassandra-joinery/checkpoint"
    state_directory: Annotated[Path, Field(description="Folder of each worker for its local states.")] = Path(
        "/var/lib/cassandra-joinery/state"
    )
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9477


class Settings(shared.Settings):
    """The tables of cdc.toml that joins read."""

    joinery: JoinerySettings = JoinerySettings()

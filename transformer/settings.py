"""The settings of `cassandra-transformer`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cdc_common.settings import shared
from stream_runtime.settings import JobSettings


class TransformerSettings(JobSettings):
    """The Spark job of `cassandra-transformer`. `file` defines its transformers (docs/guides/transformers.md)."""

    group_id: Annotated[
        str,
        Field(
            description="Name of the job. The committed offsets of the consumer group `<group_id>.<transformer>` are "
            "the position of a transformer.",
            min_length=1,
        ),
    ] = "cassandra-transformer"
    file: Annotated[Path, Field(description="Transformers file (TOML), unless the command names one.")] = Path(
        "/etc/transformers.toml"
    )
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9474


class Settings(shared.Settings):
    """The tables of cdc.toml that the transformers reads."""

    transformer: TransformerSettings = TransformerSettings()

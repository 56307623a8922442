"""The settings of `cassandra-transformer`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cdc_program.settings.job import JobSettings


class TransformerSettings(JobSettings):
    """The Spark job of `cassandra-transformer`. What it transforms is in `file` (docs/guides/transformers.md)."""

    group_id: Annotated[
        str,
        Field(
            description="Name of the job. The position of a transformer is the committed offsets of the consumer group "
            "`<group_id>.<transformer>`."
        ),
    ] = "cassandra-transformer"
    file: Annotated[Path, Field(description="The transformers file, unless the command names one (TOML).")] = Path(
        "/etc/transformers.toml"
    )
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9474

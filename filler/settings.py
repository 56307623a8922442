"""The settings of `cassandra-filler`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdc_common.settings import shared
from cdc_common.settings.base import Table


class FillerSettings(Table):
    """The filler, `cassandra-filler`, which limits the latency of clusters with few writes."""

    keyspace: Annotated[str, Field(description="Keyspace of the filler.", pattern=r"^[a-z][a-z0-9_]*$")] = "cdc_filler"
    table: Annotated[str, Field(description="Table that the filler writes to.", pattern=r"^[a-z][a-z0-9_]*$")] = (
        "filler"
    )
    max_segment_age_seconds: Annotated[
        float,
        Field(
            description="Age by which the filler has filled a commit log segment, so that Cassandra releases it to "
            "CDC (s).",
            ge=1,
        ),
    ] = 600.0
    period_seconds: Annotated[
        float,
        Field(
            description="Interval at which the filler measures the commit log and reports to the other fillers (s).",
            gt=0,
            le=30,
        ),
    ] = 10.0
    max_bytes_per_second: Annotated[int, Field(description="Maximum rate of the filler's writes (bytes/s).", ge=1)] = (
        1 << 20
    )
    write_bytes: Annotated[int, Field(description="Maximum size of one write (bytes).", ge=1, le=100_000)] = 50_000
    ttl_seconds: Annotated[int, Field(description="TTL of the filler's writes (s).", ge=1, le=630_720_000)] = 600
    cdc_raw_percent: Annotated[
        int,
        Field(
            description="Fill level of cdc_raw above which the filler pauses (% of cdc_total_space less one segment). "
            "The publisher first warns at 50 %.",
            ge=1,
            le=100,
        ),
    ] = 50
    disk_free_percent: Annotated[
        int,
        Field(description="Free space on the disk of cdc_raw below which the filler pauses (%).", ge=0, le=100),
    ] = 10
    flush_seconds: Annotated[
        float,
        Field(
            description="Interval at which the filler flushes a Cassandra 3.11 node that has full segments (s).", ge=1
        ),
    ] = 300.0
    nodetool: list[str] = Field(
        default=["nodetool"],
        min_length=1,
        description="Command that runs nodetool, with its first arguments. It flushes a Cassandra 3.11 node.",
    )
    operations_address: Annotated[
        str, Field(description="Address that serves /metrics, /health and /status.", min_length=1)
    ] = "127.0.0.1"
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9471


class Settings(shared.Settings):
    """The tables of cdc.toml that the filler reads."""

    filler: FillerSettings = FillerSettings()

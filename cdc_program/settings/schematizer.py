"""The settings of `cassandra-schematizer`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cdc_program.settings.base import Table


class SchematizerSettings(Table):
    """The schema registry, `cassandra-schematizer`."""

    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(description="Port to listen on.", ge=0, le=65535)] = 8081
    database_url: Annotated[str, Field(description="SQLAlchemy URL of the database. SQLite needs no server.")] = (
        "sqlite:////var/lib/cassandra-schematizer/registry.db"
    )
    documented_namespaces: list[str] = Field(
        default=[],
        description="Namespaces that take no schema over /api/v1 without an owner and docs of the source and of each "
        "field; patterns such as `cdc.*`.",
    )
    pii_topic_prefix: Annotated[
        str,
        Field(
            description="What the names of topics with personal fields begin with; Kafka's rights are granted by it.",
            pattern=r"^[a-zA-Z0-9_-]+$",
        ),
    ] = "pii-"
    registrations_topic: Annotated[
        str,
        Field(
            description="Kafka topic that gets each registration of a producer or consumer (by `[kafka]`); empty for "
            "none."
        ),
    ] = ""
    sample_seconds: Annotated[
        float,
        Field(
            description="How often Watson asks Kafka for offsets (s), if kafka.bootstrap_servers is set.", ge=1, le=3600
        ),
    ] = 15.0
    operations_address: Annotated[str, Field(description="Address that serves /metrics, /health and /status.")] = (
        "127.0.0.1"
    )
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9473

"""The settings that several programs use: the servers, the node on this machine, and the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from cdc_common.settings.base import Table


def _check_hosts(url: str) -> str:
    try:
        parts = [urlsplit(part.strip()) for part in url.split(",")]  # Confluent's client takes several
        is_usable = all(part.hostname and part.port != 0 for part in parts)
    except ValueError:  # of the port, or of an IPv6 address
        is_usable = False
    if not is_usable:
        raise PydanticCustomError("url", "It has no host, or no valid port")
    return url


def _check_factor(factor: int) -> int:
    if factor == 0:
        raise PydanticCustomError("factor", "A topic has at least one replica")
    return factor


class CassandraSettings(Table):
    """The connection of the publisher, the filler and `cassandra-materializer audit` to Cassandra."""

    contact_points: list[Annotated[str, Field(min_length=1)]] = Field(
        default=["127.0.0.1"],
        min_length=1,
        description="Nodes of the CDC datacenter to connect to first. The publisher and the filler connect only to the "
        "first, which must be the node on this machine. The audit connects to all nodes of its datacenter.",
    )
    port: Annotated[int, Field(description="Port of the native transport.", ge=1, le=65535)] = 9042
    username: Annotated[str, Field(description="Role to log in with; empty for no authentication.")] = ""
    password: Annotated[SecretStr, Field(description="Password of the role.")] = SecretStr("")
    password_file: Annotated[Path | None, Field(description="File that holds the password.")] = None
    ssl: Annotated[bool, Field(description="Use TLS (client_encryption_options).")] = False
    ssl_ca_file: Annotated[
        Path | None,
        Field(description="CA certificates to trust (PEM); empty for those of the operating system."),
    ] = None
    ssl_identity_file: Annotated[
        Path | None,
        Field(description="Client certificate and its private key (PEM), if the nodes require one."),
    ] = None
    ssl_check_hostname: Annotated[
        bool, Field(description="Require each node's certificate to match the address connected to.")
    ] = True
    connect_timeout_seconds: Annotated[float, Field(description="Timeout of a connection attempt (s).", gt=0)] = 10.0


class KafkaSettings(Table):
    """The connection of the programs to Kafka, and the settings of the topics that they create."""

    bootstrap_servers: Annotated[
        str, Field(description="Brokers to connect to first: host:port, separated by commas.")
    ] = "127.0.0.1:9092"
    topic_prefix: Annotated[
        str, Field(description="First part of every topic's name.", pattern=r"^[a-zA-Z0-9_-]+$")
    ] = "cdc"
    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], Field(description="Kafka's security.protocol.")
    ] = "PLAINTEXT"
    sasl_mechanism: Annotated[str, Field(description="Kafka's sasl.mechanism.")] = "PLAIN"
    sasl_username: Annotated[str, Field(description="SASL user.")] = ""
    sasl_password: Annotated[SecretStr, Field(description="SASL password.")] = SecretStr("")
    sasl_password_file: Annotated[Path | None, Field(description="File that holds the SASL password.")] = None
    ssl_ca_file: Annotated[Path | None, Field(description="CA certificates to trust (PEM).")] = None
    ssl_identity_file: Annotated[
        Path | None,
        Field(description="Client certificate and its private key (PEM), if the brokers require one."),
    ] = None
    replication_factor: Annotated[
        int,
        Field(
            description="Replication factor of each topic that is created; -1 for the broker's default.",
            ge=-1,
            le=32767,
        ),
        AfterValidator(_check_factor),
    ] = -1
    raw_partitions: Annotated[
        int,
        Field(
            description="Number of partitions of each raw topic that is created. To add partitions to an existing "
            "topic, see `cassandra-materializer state reshard`.",
            ge=1,
        ),
    ] = 8
    change_partitions: Annotated[
        int,
        Field(
            description="Number of partitions of each change topic that is created. It must never change later.", ge=1
        ),
    ] = 8
    raw_retention_hours: Annotated[int, Field(description="Retention of raw topics (hours).", ge=1)] = 14 * 24
    min_compaction_lag_hours: Annotated[
        int,
        Field(
            description="Time for which change topics retain every change, before compaction may remove it (hours).",
            ge=0,
        ),
    ] = 7 * 24
    max_compaction_lag_hours: Annotated[
        int,
        Field(
            description="When compaction of change topics must have removed what a later change has replaced, deleted "
            "rows too (hours): at least min_compaction_lag_hours and a segment (segment.ms); 0 for no bound.",
            ge=0,
        ),
    ] = 30 * 24
    connect_timeout_seconds: Annotated[
        float, Field(description="Maximum time that a starting program waits for a broker (s).", gt=0)
    ] = 15.0


class RegistrySettings(Table):
    """The connection to the schema registry, `cassandra-schematizer` or another with Confluent's API."""

    url: Annotated[
        str,
        Field(description="URL of a schema registry with Confluent's API.", pattern="^https?://"),
        AfterValidator(_check_hosts),
    ] = "http://127.0.0.1:8081"
    username: Annotated[
        str, Field(description="User for HTTP basic authentication, or the id of an API key; empty for none.")
    ] = ""
    password: Annotated[SecretStr, Field(description="Password of the user, or the secret of the API key.")] = (
        SecretStr("")
    )
    password_file: Annotated[Path | None, Field(description="File that holds the password.")] = None
    ssl_ca_file: Annotated[
        Path | None,
        Field(description="CA certificates to trust (PEM), for an https URL; empty for those of the operating system."),
    ] = None
    ssl_identity_file: Annotated[
        Path | None,
        Field(description="Client certificate and its private key (PEM), if the registry requires one."),
    ] = None


class NodeSettings(Table):
    """The Cassandra node on this machine, for the publisher and the filler."""

    cdc_raw_directory: Annotated[Path, Field(description="The node's cdc_raw_directory (cassandra.yaml).")] = Path(
        "/var/lib/cassandra/cdc_raw"
    )
    commitlog_directory: Annotated[
        Path | None,
        Field(
            description="The node's commitlog_directory (cassandra.yaml), needed for Cassandra 3.11: the filler reads "
            "the newest segment there, and the publisher counts its segments towards cdc_total_space."
        ),
    ] = None
    cdc_total_space_mib: Annotated[
        int,
        Field(
            description="The node's cdc_total_space (MiB), for Cassandra 3.11, which does not report it; 0 for "
            "Cassandra's default: 4096 MiB, or an eighth of the disk if that is less.",
            ge=0,
        ),
    ] = 0
    commitlog_segment_mib: Annotated[
        int,
        Field(
            description="The node's commitlog_segment_size (MiB), for Cassandra 3.11, which does not report it.", ge=1
        ),
    ] = 32


class LogSettings(Table):
    """The log of every program, on stderr."""

    format: Annotated[
        Literal["auto", "console", "json"],
        Field(description="`auto` is readable text on a terminal and JSON everywhere else."),
    ] = "auto"
    level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="Lowest level that is logged.")
    ] = "info"


class Settings(Table):
    """The tables of cdc.toml that all programs know. A program's own Settings adds the others that it reads."""

    cassandra: CassandraSettings = CassandraSettings()
    kafka: KafkaSettings = KafkaSettings()
    registry: RegistrySettings = RegistrySettings()
    node: NodeSettings = NodeSettings()
    log: LogSettings = LogSettings()

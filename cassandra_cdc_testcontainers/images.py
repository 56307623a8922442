"""The images of the containers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

_VERSION = version("cassandra-cdc-materializer")


@dataclass(frozen=True, slots=True)
class Images:
    """The name of each container's image. Those of the programs are built from deploy/images/Dockerfile."""

    cassandra: str = "cassandra:5.0.8"
    kafka: str = "apache/kafka:4.1.0"
    schematizer: str = f"cassandra-schematizer:{_VERSION}"
    publisher: str = f"cassandra-publisher:{_VERSION}"
    filler: str = f"cassandra-filler:{_VERSION}"
    materializer: str = f"cassandra-materializer:{_VERSION}"

"""All tables: importing this module fills Base.metadata."""

from __future__ import annotations

from schematizer.model import (
    client_tables,
    deployment_tables,
    record_tables,
    registry_tables,
    security_tables,
    source_tables,
)
from schematizer.model.base import Base

metadata = Base.metadata

__all__ = [
    "client_tables",
    "deployment_tables",
    "metadata",
    "record_tables",
    "registry_tables",
    "security_tables",
    "source_tables",
]

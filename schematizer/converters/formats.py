"""The converters by the names of their formats: those of this package, and those of others."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from schematizer.converters.avro import AvroConverter
from schematizer.converters.cql import CqlConverter
from schematizer.converters.sql import SqlConverter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from schematizer.converters.converted import Converter

GROUP = "cassandra_schematizer.converters"


def all_converters() -> Mapping[str, Converter]:
    """A package adds one by an entry point: its name is the format's, its object has `convert`."""
    found: dict[str, Converter] = {
        "avro": AvroConverter(),
        "cql": CqlConverter(),
        "mysql": SqlConverter("mysql"),
        "postgresql": SqlConverter("postgres"),
    }
    return found | {point.name: point.load() for point in entry_points(group=GROUP)}

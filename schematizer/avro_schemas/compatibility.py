"""Whether readers and writers with different schemas are compatible: Apache avro's rules, Confluent's levels.

The check is avro.compatibility. Its input is schemas in `resolved` form, which corrects its differences from
org.apache.avro.SchemaCompatibility, which Confluent uses: aliases without a namespace never match there, a record of
type `error` is unknown to it, a name in the null namespace inside a namespace is misread, and a name written as
{"type": "…"} is refused.
"""

from __future__ import annotations

import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any

import avro.compatibility
import avro.name
import avro.schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schematizer.avro_schemas.parsing import AvroSchema


class Level(Enum):
    """Value: (new reads old, old reads new, all earlier versions instead of the latest)."""

    NONE = (False, False, False)
    BACKWARD = (True, False, False)
    BACKWARD_TRANSITIVE = (True, False, True)
    FORWARD = (False, True, False)
    FORWARD_TRANSITIVE = (False, True, True)
    FULL = (True, True, False)
    FULL_TRANSITIVE = (True, True, True)

    @property
    def transitive(self) -> bool:
        return self.value[2]


def conflicts(level: Level, new: AvroSchema, earlier: Sequence[tuple[int, AvroSchema]]) -> list[str]:
    """Why the level forbids the new schema after the earlier (version, schema), oldest first; empty if it allows it."""
    backward, forward, transitive = level.value
    messages: list[str] = []
    for version, old in earlier if transitive else earlier[-1:]:
        if backward:
            messages += _unreadable(new, old, f"the new schema cannot read data of version {version}")
        if forward:
            messages += _unreadable(old, new, f"version {version} cannot read data of the new schema")
    return messages


def _unreadable(reader: AvroSchema, writer: AvroSchema, meaning: str) -> list[str]:
    checker = avro.compatibility.ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call] # avro has no types
    result = checker.get_compatibility(_library_schema(reader), _library_schema(writer))
    if result.compatibility is avro.compatibility.SchemaCompatibilityType.compatible:
        return []
    kinds = ", ".join(dict.fromkeys(kind.name.upper() for kind in result.incompatibilities))
    places = ", ".join(sorted(result.locations - {"/"})) or "/"
    return [f"{kinds}: {meaning}: {', '.join(sorted(result.messages))} (at {places})"]


def _library_schema(schema: AvroSchema) -> Any:  # noqa: ANN401 - avro has no types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return avro.schema.make_avsc_object(schema.resolved, avro.name.Names())

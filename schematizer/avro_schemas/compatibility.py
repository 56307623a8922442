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

from schematizer.avro_schemas.parsing import AvroSchema, InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_COMPARISONS = 100_000
"""Of parts of one schema with parts of another: some seconds. Each branch of a union is compared with each of the
other's, while other writers wait.
"""


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
    """Why the level forbids the new schema after the earlier (version, schema), oldest first; empty if it allows it.
    InvalidSchemaError if they are too large to be compared.
    """
    backward, forward, transitive = level.value
    messages: list[str] = []
    for version, old in earlier if transitive else earlier[-1:]:
        if backward:
            messages += _unreadable(new, old, f"the new schema cannot read data of version {version}")
        if forward:
            messages += _unreadable(old, new, f"version {version} cannot read data of the new schema")
    return messages


def _unreadable(reader: AvroSchema, writer: AvroSchema, meaning: str) -> list[str]:
    checker = _Checker(meaning)
    result = checker.get_compatibility(_library_schema(reader), _library_schema(writer))
    if result.compatibility is avro.compatibility.SchemaCompatibilityType.compatible:
        return []
    kinds = ", ".join(dict.fromkeys(kind.name.upper() for kind in result.incompatibilities))
    places = ", ".join(sorted(result.locations - {"/"})) or "/"
    return [f"{kinds}: {meaning}: {', '.join(sorted(result.messages))} (at {places})"]


class _Checker(avro.compatibility.ReaderWriterCompatibilityChecker):
    """The library's, with a limit, and in a time that rises with the fields of a record and not with their square."""

    def __init__(self, meaning: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # avro has no types
        self._meaning = meaning
        self._left = _MAX_COMPARISONS

    def get_compatibility(self, reader: Any, writer: Any, *place: Any) -> Any:  # noqa: ANN401 - as above
        self._left -= 1
        if self._left < 0:
            raise InvalidSchemaError(
                f"it takes more than {_MAX_COMPARISONS:,} comparisons to say whether {self._meaning}"
            )
        return super().get_compatibility(reader, writer, *place)

    def check_reader_writer_record_fields(self, reader: Any, writer: Any, location: Any) -> Any:  # noqa: ANN401 - as above
        indexed: Any = _Indexed(writer)
        return super().check_reader_writer_record_fields(reader, indexed, location)


class _Indexed:
    """A record's schema. The library makes a new index of its fields each time that it looks for one."""

    def __init__(self, schema: Any) -> None:  # noqa: ANN401 - as above
        self._schema = schema
        self.fields_dict = schema.fields_dict

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return getattr(self._schema, name)


def _library_schema(schema: AvroSchema) -> Any:  # noqa: ANN401 - avro has no types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return avro.schema.make_avsc_object(schema.resolved, avro.name.Names())

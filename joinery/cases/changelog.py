"""The changelog of an input of a case: its changes as messages, as the materializer sends them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from fastavro import parse_schema, schemaless_writer, validate
from fastavro.schema import SchemaParseException

from cdc_common.messages.avro.names import namespace
from joinery.cases.errors import CaseError
from joinery.planning.column_types import is_nullable
from joinery.planning.errors import PlanError
from joinery.planning.input_schema import InputSchema

if TYPE_CHECKING:
    from joinery.cases.definition import CaseInput
    from joinery.definition import Input

_SOURCE = [
    {"name": "ts_us", "type": "long"},
    {"name": "cause", "type": "string"},
    {"name": "row_sequence", "type": "long"},
]


class Changelog:
    """The rows of an input, and the messages of its changes."""

    def __init__(self, name: str, given: Input, case: CaseInput) -> None:
        """CaseError for a type that is none of Avro's."""
        self._types = case.types()
        self._keys = case.key
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._sequences: dict[tuple[Any, ...], int] = {}
        self._parsed = {column: _parsed(f"{name}.{column}", tree) for column, tree in self._types.items()}
        space = namespace(str(given))
        self.value_schema = _value_schema(space, self._types)
        key = _record("Key", {column: self._types[column] for column in self._keys}) | {"namespace": space}
        try:
            self._envelope = parse_schema(self.value_schema)
            self.schema = InputSchema.of(str(given), key, self.value_schema)
        except SchemaParseException as error:
            raise CaseError(f"the columns of {name} make no Avro schema: {error}") from error
        except PlanError as error:
            raise CaseError(error.reason) from error

    def change(self, row: dict[str, Any], *, is_delete: bool) -> bytes:
        """The Avro bytes of the message for a change. CaseError for a row that is not of the columns."""
        whole = self._whole(row, self._keys if is_delete else list(self._types))
        key = tuple(repr(whole[name]) for name in self._keys)
        before = self._rows.pop(key, None)
        if is_delete and before is None:
            raise CaseError("it deletes a row that is not there")
        after = None if is_delete else whole
        if after is not None:
            self._rows[key] = after
        sequence = self._sequences[key] = self._sequences.get(key, 0) + 1
        source = {"ts_us": 0, "cause": "write", "row_sequence": sequence}
        op = "d" if after is None else "c" if before is None else "u"
        data = io.BytesIO()
        schemaless_writer(data, self._envelope, {"before": before, "after": after, "source": source, "op": op})
        return data.getvalue()

    def _whole(self, row: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
        """The row with null in the columns that it does not name."""
        if unknown := [name for name in row if name not in wanted]:
            raise CaseError(f"it has {unknown[0]}, and {', '.join(wanted)} are wanted")
        made = {}
        for name in wanted:
            value = read_value(self._types[name], row.get(name))
            if not validate(value, self._parsed[name], raise_errors=False):
                raise CaseError(f"{name} has a value that is not of its type, or none")
            made[name] = value
        return made


def read_value(tree: Any, value: Any) -> Any:  # noqa: ANN401 - of any type
    """The value of a column. Those of bytes are written in hexadecimal digits. CaseError."""
    types = tree if isinstance(tree, list) else [tree]
    if "bytes" not in types or not isinstance(value, str):
        return value
    try:
        return bytes.fromhex(value)
    except ValueError as error:
        raise CaseError("bytes are written in hexadecimal digits, such as '0aff'") from error


def _parsed(column: str, tree: Any) -> Any:  # noqa: ANN401 - JSON
    try:
        return parse_schema(tree)
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise CaseError(f"the type of {column} is none of Avro's") from error


def _value_schema(space: str, types: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": "before", "type": ["null", _record("Value", types)], "default": None},
        {"name": "after", "type": ["null", f"{space}.Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": _SOURCE}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return {"type": "record", "name": "Envelope", "namespace": space, "fields": fields}


def _record(name: str, types: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": column, "type": tree, **({"default": None} if is_nullable(tree) and tree[0] == "null" else {})}
        for column, tree in types.items()
    ]
    return {"type": "record", "name": name, "fields": fields}

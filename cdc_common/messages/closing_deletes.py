"""The delete that closes a row in its change topic, for a rebuild. It is made from the newest message of the row's key,
without the state or Cassandra's schema.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, NamedTuple
from uuid import UUID

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from cdc_common.messages import wire

CAUSE = "rebuild"
_NO_HOST = str(UUID(int=0))


class ClosingDelete(NamedTuple):
    """The delete of a row."""

    # The message's value, in the Confluent wire format.
    value: bytes
    # The row_sequence of the delete.
    row_sequence: int


class ClosingDeletes:
    """Makes the deletes of rows whose newest messages have one schema, in the registry's form."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = parse_schema(_without_logical_types(schema))

    def delete_after(self, newest: bytes, now_us: int) -> ClosingDelete | None:
        """The delete that follows a row's newest message, with the same schema; None if the row does not exist."""
        envelope: Any = schemaless_reader(BytesIO(newest[wire.HEADER_SIZE :]), self._schema, None)
        if envelope["after"] is None:
            return None
        source = envelope["source"]
        row_sequence = source["row_sequence"] + 1
        delete = {
            **envelope,
            "before": envelope["after"],
            "after": None,
            "source": {
                **source,
                "ts_ms": now_us // 1000,
                "ts_us": now_us,
                "host": _NO_HOST,
                "file": "",
                "pos": 0,
                "cause": CAUSE,
                "row_sequence": row_sequence,
                "left_out": [],
                **{name: _fields_of_before(source[name]) for name in ("empty", "unreadable")},
            },
            "op": "d",
            "ts_ms": now_us // 1000,
        }
        target = BytesIO()
        schemaless_writer(target, self._schema, delete)
        return ClosingDelete(newest[: wire.HEADER_SIZE] + target.getvalue(), row_sequence)


def _fields_of_before(names: list[str]) -> list[str]:
    """The names of the fields of `after`, which becomes `before`."""
    return [f"before.{name.removeprefix('after.')}" for name in names if name.startswith("after.")]


def _without_logical_types(schema: Any) -> Any:  # noqa: ANN401 - Avro's JSON
    """Values are only copied, so they must not become Python's dates, whose range is smaller."""
    if isinstance(schema, dict):
        return {name: _without_logical_types(value) for name, value in schema.items() if name != "logicalType"}
    return [_without_logical_types(branch) for branch in schema] if isinstance(schema, list) else schema

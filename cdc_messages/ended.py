"""The end of a row in its change topic, made of the newest message of its key alone: no state is asked, nor a schema of
Cassandra's.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, NamedTuple
from uuid import UUID

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from cdc_messages import wire

CAUSE = "rebuild"
_NO_HOST = str(UUID(int=0))


class Ended(NamedTuple):
    """A `d` in the Confluent wire format, and its row_sequence."""

    value: bytes
    row_sequence: int


class Ending:
    """Ends rows whose newest messages were written under one schema, given as the registry gives it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = parse_schema(_plain(schema))

    def end(self, newest: bytes, now_us: int) -> Ended | None:
        """The `d` that follows a row's newest message, under the same schema; None where the row is not there."""
        envelope: Any = schemaless_reader(BytesIO(newest[wire.HEADER_SIZE :]), self._schema, None)
        if envelope["after"] is None:
            return None
        source = envelope["source"]
        row_sequence = source["row_sequence"] + 1
        ended = {
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
                **{names: _of_before(source.get(names, [])) for names in ("empty", "unreadable")},
            },
            "op": "d",
            "ts_ms": now_us // 1000,
        }
        target = BytesIO()
        schemaless_writer(target, self._schema, ended)
        return Ended(newest[: wire.HEADER_SIZE] + target.getvalue(), row_sequence)


def _of_before(names: list[str]) -> list[str]:
    """The fields of `after` that have no form in Avro, as those of `before` that it becomes."""
    return [f"before.{name.removeprefix('after.')}" for name in names if name.startswith("after.")]


def _plain(schema: Any) -> Any:  # noqa: ANN401 - Avro's JSON
    """Without logical types: what is only handed on is not to be read as dates, of which Python knows fewer."""
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items() if name != "logicalType"}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema

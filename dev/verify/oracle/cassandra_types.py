"""Cassandra's own types, comparators and counters in one long-lived JVM that speaks JSON lines.

`java/CassandraTypes.java` tells the requests.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.java_child import FOLDER, JavaChild

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassandra_storage.formats.types.cql_types import UserTypeDefinition


class CassandraTypes(JavaChild):
    """A context manager."""

    def __init__(self, user_types: Mapping[str, UserTypeDefinition]) -> None:
        super().__init__(VERSIONS["5.0"], [FOLDER / "CassandraTypes.java"])
        self._user_types = [
            {"name": one.name, "field_names": one.field_names, "field_types": one.field_types}
            for one in user_types.values()
        ]

    def request(self, op: str, **request: object) -> dict[str, Any]:
        """The answer; AssertionError with Cassandra's own message if it refuses the request as a whole."""
        self.send_line(json.dumps({"op": op, "user_types": self._user_types, **request}))
        answer: dict[str, Any] = json.loads(self.answer())
        assert "error" not in answer, answer["error"]
        return answer


def hexes(values: Sequence[bytes | None]) -> list[str | None]:
    return [None if value is None else value.hex() for value in values]

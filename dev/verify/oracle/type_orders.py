"""The comparators of any Cassandra version in one long-lived JVM; `java/TypeOrders.java` tells the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from cassandra_storage.formats.types.cql_types import type_text
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.verify.oracle.java_child import FOLDER, JavaChild

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassandra_storage.formats.rows.clustering import ClusteringBound
    from cassandra_storage.formats.schema.tables import ColumnMetadata
    from cassandra_storage.formats.types.cql_types import UserTypeDefinition
    from cassandra_storage.formats.types.marshal import CqlType


class TypeOrders(JavaChild):
    """A context manager. Answers have a text of signs for each value: how it compares with each."""

    def __init__(self, version: str, user_types: Mapping[str, UserTypeDefinition]) -> None:
        super().__init__(VERSIONS[version], [FOLDER / "TypeOrders.java"])
        self._user_types = user_types

    def __enter__(self) -> Self:
        super().__enter__()
        for one in self._user_types.values():
            fields = zip(one.field_names, one.field_types, strict=True)
            self.send_line("\t".join(["user_type", one.name, *(word for field in fields for word in field)]))
        return self

    def values(self, type_: CqlType, values: Sequence[bytes]) -> list[str]:
        return self._request("values", type_text(type_), _hexes(values))

    def paths(self, type_: CqlType, paths: Sequence[bytes]) -> list[str]:
        return self._request("paths", type_text(type_), _hexes(paths))

    def clusterings(self, columns: Sequence[ColumnMetadata], prefixes: Sequence[ClusteringBound]) -> list[str]:
        """Clusterings, given as bounds of the kind CLUSTERING, and bounds."""
        texts = [f"{prefix.kind.name}:{_hexes(prefix.values) if prefix.values else 'none'}" for prefix in prefixes]
        types = [f"{'DESC' if column.is_reversed else 'ASC'} {type_text(column.type)}" for column in columns]
        return self._request("clusterings", " ".join(texts), *types)

    def _request(self, *words: str) -> list[str]:
        self.send_line("\t".join(words))
        answer = self.answer()
        assert not answer.startswith("error"), answer
        return answer.split()


def _hexes(values: Sequence[bytes | None]) -> str:
    return ",".join("-" if value is None else value.hex() for value in values)

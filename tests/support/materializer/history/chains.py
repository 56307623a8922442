"""The changes of each key as a consumer reads them: a chain without gaps, whatever the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.changes import change_op

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import RowChange, RowImage

Key = tuple[bytes, "Clustering | None"]


class Chains:
    """Add changes in the order in which they came out."""

    def __init__(self) -> None:
        self._latest: dict[Key, RowImage | None] = {}
        self._numbers: dict[Key, int] = {}
        self._in_topics: dict[str, dict[Key, RowImage | None]] = {}

    def add(self, changes: Iterable[RowChange], schemas: Mapping[bytes, TableMetadata], *, is_gapless: bool) -> None:
        """is_gapless: no row_sequence can have been purged."""
        for change in changes:
            key = change.partition_key, change.clustering
            former, number = self._latest.get(key), self._numbers.get(key, 0)
            assert change.before == former, f"before is not the after of the message before, {former}: {change}"
            assert change.before != change.after, f"a message that changes nothing: {change}"
            if former is not None or is_gapless:
                assert change.row_sequence == number + 1, f"row_sequence follows {number}: {change}"
            assert change.row_sequence > number, f"row_sequence was used before, up to {number}: {change}"
            is_read = change.source.snapshot or change.source.cause == "moved"
            assert change.op == change_op(change.before, change.after, is_snapshot=is_read), change
            assert change.topic is not None
            topic = self._in_topics.setdefault(change.topic.name, {})
            assert change.before == topic.get(key), f"not the after of the message before in {change.topic}: {change}"
            topic[key] = change.after
            names = {column.name for column in schemas[change.schema].columns}
            assert {*(change.before or ()), *(change.after or ())} <= names, f"columns of another schema: {change}"
            self._latest[key], self._numbers[key] = change.after, change.row_sequence

    def topics(self) -> set[str]:
        """The topics that show rows."""
        return {name for name, rows in self._in_topics.items() if any(image is not None for image in rows.values())}

    def rows(self, partition_key: bytes) -> dict[Clustering | None, dict[str, object]]:
        """The rows of a partition as their last messages leave them."""
        return {
            clustering: dict(image)
            for (partition, clustering), image in self._latest.items()
            if partition == partition_key and image is not None
        }

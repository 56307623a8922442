"""The values of serialized partition keys (org.apache.cassandra.db.marshal.CompositeType)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata


def partition_key_values(table: TableMetadata, key: bytes) -> list[bytes]:
    """The values of a serialized partition key: of one column it is the value itself, of several a CompositeType
    (for each 2 bytes of length, the value, 0x00).
    """
    count = len(table.partition_key)
    if count == 1:
        return [key]
    values = []
    position = 0
    for _ in range(count):
        start = position + 2
        position = start + int.from_bytes(key[position:start], "big") + 1
        if position > len(key):
            raise FormatError("a partition key that ends too early", position=start)
        values.append(key[start : position - 1])
    if position != len(key):
        raise FormatError("bytes after a partition key's last value", position=position)
    return values

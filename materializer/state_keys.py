"""The keys of a raw partition's state, in an order that makes a partition, a range of rows or what is due one scan.

    m <name>                                        facts of the whole state: the fold's `now`, the table's id
    s <number>                                      a table schema that stored rows refer to by its number
    x <second> <partition> <section> <clustering>   expiry queue: what may expire at that second
    p <partition> 0                                 a partition's own facts (PartitionFacts)
    p <partition> 1 <start>                         a range tombstone
    p <partition> 2                                 the static row
    p <partition> 3 <clustering>                    a row

`<partition>` is the length of the partition key (4 bytes) and the key; `<clustering>` and `<start>` are byte-comparable
(cassandra_storage.byte_comparable), so that rows lie in their table's clustering order.
Keys beginning with 0x00 are not the fold's: the state store keeps its own marker there.
"""

from __future__ import annotations

NOW = b"mnow"
TABLE_ID = b"mtable"
SCHEMA = b"s"
EXPIRY = b"x"
PARTITION = b"p"

FACTS_SECTION = b"\x00"
RANGES_SECTION = b"\x01"
STATIC_SECTION = b"\x02"
ROWS_SECTION = b"\x03"
ROWS_END = b"\x04"


def partition_prefix(partition_key: bytes) -> bytes:
    """The beginning of all keys of one partition."""
    return PARTITION + len(partition_key).to_bytes(4, "big") + partition_key


def schema_key(number: int) -> bytes:
    return SCHEMA + number.to_bytes(4, "big")


def expiry_key(second: int, data_key: bytes) -> bytes:
    """The queue's entry for the row or static row at `data_key`, which may expire at `second`."""
    return EXPIRY + second.to_bytes(8, "big") + data_key


def split_expiry_key(key: bytes) -> tuple[int, bytes]:
    """The second and the data key of an entry of the expiry queue."""
    return int.from_bytes(key[1:9], "big"), key[9:]


def split_data_key(key: bytes) -> tuple[bytes, bytes]:
    """The partition key and the section's byte of a key made from `partition_prefix`."""
    end = 5 + int.from_bytes(key[1:5], "big")
    return key[5:end], key[end : end + 1]

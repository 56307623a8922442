"""The keys of a raw partition's state, in an order that makes a partition, a range of rows or what is due one scan.

    m <name>                                        facts of the whole state: times, the schemas shown, the floor, and
                                                    what is unfinished (materializer.rows.continuation)
    o <host>                                        what is known of a publisher (materializer.fold.publishers)
    s <number>                                      a table schema that stored rows refer to by its number
    x <second> <partition> <section> <clustering>   expiry queue: what may expire at that second
    g <second> <partition> <section> <clustering>   purge queue: what holds something that is dead since that second
    q <ms> <partition> <order>                      queue of held writes: by the time of their arrival
    h <partition> <order>                           a held write
    e <partition>                                   a partition that a schema change has reached ahead of its turn
    i <partition> <mark>                            what is missing in a partition (materializer.fold.gaps)
    p <partition> 0                                 a partition's own facts (PartitionFacts)
    p <partition> 1 <start>                         a range tombstone
    p <partition> 2                                 the static row
    p <partition> 3 <clustering>                    a row

`<partition>` is the length of the partition key (4 bytes) and the key, in the queues x and g with the `p` before it;
`<clustering>` and `<start>` are byte-comparable (cassandra_storage.byte_comparable), so that rows lie in their table's
clustering order; `<order>` is a write's order key (materializer.fold.row_updates), byte-comparable too.
Keys beginning with 0x00 are not the fold's: the state store keeps its own marker there.
"""

from __future__ import annotations

NOW = b"mnow"
CLOCK = b"mclock"
FLOOR = b"mfloor"
SHOWN = b"mshown"
UNFINISHED = b"munfinished"
HOST = b"o"
HOST_END = b"p"
EVOLVED = b"e"
EVOLVED_END = b"f"
SCHEMA = b"s"
EXPIRY = b"x"
EXPIRY_END = b"y"
PURGE = b"g"
HELD_QUEUE = b"q"
HELD_QUEUE_END = b"r"
HELD = b"h"
INCOMPLETE = b"i"
INCOMPLETE_END = b"j"
PARTITION = b"p"
PARTITION_END = b"q"

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


def queue_key(queue: bytes, number: int, what: bytes) -> bytes:
    """The entry in the queue (EXPIRY, PURGE, HELD_QUEUE) for `what`, due at the second, or ms, `number`."""
    return queue + number.to_bytes(8, "big") + what


def split_queue_key(key: bytes) -> tuple[int, bytes]:
    """When an entry of a queue is due, and what it is for."""
    return int.from_bytes(key[1:9], "big"), key[9:]


def split_data_key(key: bytes) -> tuple[bytes, bytes]:
    """The partition key and the section's byte of a key made from `partition_prefix`."""
    end = 5 + int.from_bytes(key[1:5], "big")
    return key[5:end], key[end : end + 1]


def held_prefix(partition_key: bytes) -> bytes:
    """The beginning of the keys of one partition's held writes."""
    return HELD + len(partition_key).to_bytes(4, "big") + partition_key

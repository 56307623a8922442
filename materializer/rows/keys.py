"""The keys of a raw partition's state. One scan reads a Cassandra partition, a range of its rows or the next timers.

    m <name>                                        facts of the whole state: times, the schemas shown, the change
                                                    topics (materializer.rows.published) and their ids
                                                    (materializer.rows.topic_ids), the floor, the
                                                    truncations (materializer.fold.truncations), and the
                                                    continuation (materializer.rows.continuation)
    o <host>                                        the watermark of a publisher (materializer.fold.publishers)
    s <number>                                      a table schema, to which stored rows refer by its number
    x <second> <partition> <section> <clustering>   expiry timer: something may expire at that second
    g <second> <partition> <section> <clustering>   purge timer: something has been dead since that second
    q <ms> <partition> <order>                      reorder timer: the arrival of a write in the reorder buffer
    h <partition> <order>                           a write in the reorder buffer
    e <partition>                                   a partition that a schema change has reached before its turn
    i <partition> <gap>                             a gap: missing messages of a partition (materializer.fold.gaps)
    b <snapshot>                                    a snapshot that has begun (materializer.fold.snapshots)
    r <partition> <repair>                          a repair that has begun (materializer.fold.repairs)
    u <partition> <repair> <section> …              a message that a repair holds (materializer.fold.held)
    p <partition> 0                                 a partition's own facts (PartitionFacts)
    p <partition> 1 <start>                         a range tombstone
    p <partition> 2                                 the static row
    p <partition> 3 <clustering>                    a row

Partitions are Cassandra's here: `<partition>` is the length of the partition key (4 bytes) and the key, in the timers x
and g with the `p` before it. `<clustering>` and `<start>` are byte-comparable, so that rows are in their table's
clustering order (cassandra_storage.formats.rows.byte_comparable); `<order>` is a write's order key
(materializer.records.Order), byte-comparable too. Keys that begin with 0x00 are not the fold's: the local store keeps
its own marker there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

NOW = b"mnow"
CLOCK = b"mclock"
FLOOR = b"mfloor"
SHOWN = b"mshown"
CONTINUATION = b"munfinished"
TRUNCATED = b"mtruncated"
TOPICS = b"mtopics"
TOPIC_IDS = b"mtopicids"
RESEND = b"mresend"
PUBLISHER = b"o"
PUBLISHER_END = b"p"
EVOLVED = b"e"
EVOLVED_END = b"f"
SCHEMA = b"s"
EXPIRY = b"x"
EXPIRY_END = b"y"
PURGE = b"g"
REORDER_TIMER = b"q"
REORDER_TIMER_END = b"r"
REORDER = b"h"
INCOMPLETE = b"i"
INCOMPLETE_END = b"j"
SNAPSHOT = b"b"
SNAPSHOT_END = b"c"
REPAIR = b"r"
REPAIR_END = b"s"
HELD = b"u"
PARTITION = b"p"
PARTITION_END = b"q"

FACTS_SECTION = b"\x00"
RANGES_SECTION = b"\x01"
STATIC_SECTION = b"\x02"
ROWS_SECTION = b"\x03"
ROWS_END = b"\x04"


def partition_prefix(partition_key: bytes) -> bytes:
    """The beginning of all keys of one Cassandra partition."""
    return PARTITION + len(partition_key).to_bytes(4, "big") + partition_key


def repair_key(kind: bytes, partition_key: bytes, repair: bytes) -> bytes:
    """The key of a repair (REPAIR), or the beginning of the keys of what it holds (HELD). repair: its id, 16 bytes."""
    return kind + partition_prefix(partition_key)[1:] + repair


def held_prefix(partition_key: bytes, repair: UUID) -> bytes:
    """The beginning of the keys of all that a repair holds."""
    return repair_key(HELD, partition_key, repair.bytes)


def held_end(prefix: bytes) -> bytes:
    """The end of the keys of all that a repair holds."""
    return prefix + ROWS_END


def schema_key(number: int) -> bytes:
    return SCHEMA + number.to_bytes(4, "big")


def timer_key(kind: bytes, time: int, subject: bytes) -> bytes:
    """The timer of a kind (EXPIRY and PURGE in seconds, REORDER_TIMER in ms) for the rest of another key."""
    return kind + time.to_bytes(8, "big") + subject


def split_timer_key(key: bytes) -> tuple[int, bytes]:
    """The time of a timer, and its subject."""
    return int.from_bytes(key[1:9], "big"), key[9:]


def split_data_key(key: bytes) -> tuple[bytes, bytes]:
    """The partition key and the section's byte of a key made from `partition_prefix`."""
    end = 5 + int.from_bytes(key[1:5], "big")
    return key[5:end], key[end : end + 1]


def reorder_prefix(partition_key: bytes) -> bytes:
    """The beginning of the keys of one Cassandra partition's writes in the reorder buffer."""
    return REORDER + len(partition_key).to_bytes(4, "big") + partition_key

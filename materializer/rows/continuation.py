"""What is under way in a partition: work on more rows than one chunk takes is kept in the state between chunks.

There is at most one in a raw partition, and while it is there nothing else of the raw partition is folded. The record
that it belongs to is taken when it is finished, not before: until then the group's offset stays in front of it, so that
whoever goes on after a crash is given it again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from cassandra_storage.deletion import DeletionTime
from cdc_messages.changes import Source
from materializer.rows.catalog import SchemaId
from materializer.rows.expiry import Moment
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import UNFINISHED

if TYPE_CHECKING:
    from materializer.rows.overlay import Overlay


class Reach(NamedTuple):
    """The rows with clustering keys in [first, last), None for the end, that a `static` row's change, a `range`
    deletion or a `partition` deletion is about.
    """

    kind: Literal["static", "range", "partition"]
    first: bytes = b""
    last: bytes | None = None
    deletion: DeletionTime | None = None


class Fanout(NamedTuple):
    """A write or a second's expiry that is done but for what lies at `at` (section and what follows) and behind it.

    static_before: the static row from before, as it is stored; empty if there was none. visible_before: how many rows
    were visible. is_record: it is finished with the record that is folded, which is then taken.
    """

    partition_key: bytes
    schema: SchemaId
    reach: Reach
    at: bytes
    source: Source
    moment: Moment
    static_before: bytes
    visible_before: int
    is_record: bool


class SchemaMove(NamedTuple):
    """A partition on its way from the schema `shown` to another, as seen at `now` (s), done but for what lies at `at`
    and behind it; `visible` rows are so far.
    """

    partition_key: bytes
    schema: SchemaId
    shown: SchemaId
    at: bytes
    now: int
    visible: int = 0


Unfinished: TypeAlias = Fanout | SchemaMove


def read_unfinished(overlay: Overlay) -> Unfinished | None:
    value = overlay.get(UNFINISHED)
    if value is None:
        return None
    check_version(value)
    kind, *fields = json.loads(value[1:], object_hook=lambda found: bytes.fromhex(found["hex"]))
    if kind == "schema":
        partition_key, schema, shown, *rest = fields
        return SchemaMove(partition_key, SchemaId(*schema), SchemaId(*shown), *rest)
    partition_key, schema, reach, at, source, moment, *rest = fields
    reached, first, last, deletion = reach
    return Fanout(
        partition_key,
        SchemaId(*schema),
        Reach(reached, first, last, None if deletion is None else DeletionTime(*deletion)),
        at,
        Source(*source),
        Moment(*moment),
        *rest,
    )


def put_unfinished(overlay: Overlay, unfinished: Unfinished | None) -> None:
    """None: nothing is unfinished any more."""
    if unfinished is None:
        overlay.put(UNFINISHED, None)
        return
    kind = "schema" if isinstance(unfinished, SchemaMove) else "fan-out"
    text = json.dumps([kind, *unfinished], default=lambda value: {"hex": value.hex()}, separators=(",", ":"))
    overlay.put(UNFINISHED, VERSION_BYTE + text.encode())

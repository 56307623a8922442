"""Find how long a state has nothing to do without a new raw message, so that its raw partition may sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from materializer.fold.next_timer import next_timer_ms
from materializer.fold.schema_change import read_shown
from materializer.fold.schema_in_force import SchemaInForce
from materializer.fold.truncations import read_truncations
from materializer.rows.keys import (
    CLOCK,
    CONTINUATION,
    NOW,
    PUBLISHER,
    PUBLISHER_END,
    PURGE,
    REPAIR,
    REPAIR_END,
    SNAPSHOT,
    SNAPSHOT_END,
    split_timer_key,
    timer_key,
)
from stream_runtime.records import Rest

if TYPE_CHECKING:
    from collections.abc import Collection

    from materializer.rows.catalog import TableCatalog
    from materializer.rows.settings import FoldSettings
    from stream_runtime.state.reader import StateReader

_LAST_SECOND = 2**62
_TIMES = frozenset({NOW, CLOCK})


def changes_state(writes: Collection[bytes]) -> bool:
    """Whether a chunk that writes these keys changes more than the times of the raw partition and its publishers."""
    return any(key not in _TIMES and not key.startswith(PUBLISHER) for key in writes)


def find_rest(state: StateReader, catalog: TableCatalog, settings: FoldSettings, rules: int) -> Rest | None:
    """The rest of a state; None if a fold with any heartbeat may store something now. rules: as Rest's."""
    shown = read_shown(state)
    # Rows are cut, or follow a changed schema; or the next message may name a newer schema, also a heartbeat.
    if state.get(CONTINUATION) is not None or len(shown) > 1 or not SchemaInForce(state, catalog).is_newest:
        return None
    due_ms = next_timer_ms(state, settings.reorder_ms)
    purge_ms = None
    if _waits(state):
        purge_ms = 0
    elif (dead_since := next(state.scan(PURGE, timer_key(PURGE, _LAST_SECOND, b"")), None)) is not None:
        table_id = shown[0].schema.table_id if shown else b""
        table = catalog.schemas.get((table_id, catalog.newest.get(table_id, b"")))
        kept_for = settings.purge_margin_seconds + (0 if table is None else table.gc_grace_seconds)
        purge_ms = 1000 * (split_timer_key(dead_since[0])[0] + kept_for + 1) + settings.reorder_ms
    hosts = frozenset(crc32(key[1:]) for key, _ in state.scan(PUBLISHER, PUBLISHER_END))
    return Rest(due_ms, purge_ms, hosts, rules)


def _waits(state: StateReader) -> bool:
    """Whether something ends only with later messages of publishers, or by their time: a snapshot, a repair, or the
    wait for hosts after a TRUNCATE.
    """
    truncated = read_truncations(state)
    if truncated is not None and truncated.waits:
        return True
    return any(
        next(state.scan(start, end), None) is not None
        for start, end in ((SNAPSHOT, SNAPSHOT_END), (REPAIR, REPAIR_END))
    )

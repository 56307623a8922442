"""The fault points of a load (stream_runtime.fault_points)."""

from __future__ import annotations

from stream_runtime.fault_points import Point


class WarehousePoint(Point):
    """A point in the protocol of a table, in the order of its steps. The value says what holds if the process dies
    there, and what the table's next task does.
    """

    STATE_READ = "The table's state has been read. Nothing has been done."
    BATCH_TAKEN = "Messages are in memory. The next task reads them again."
    LOAD_DECIDED = "A load is decided in memory only. The next task may load other messages together."
    STATE_CLAIMED = "The open transaction has changed the state. The warehouse aborts it."
    TABLE_MIGRATED = "The open transaction has made or altered the table. The warehouse aborts it."
    ROWS_STAGED = "The rows are in the transaction's staging. The warehouse aborts it."
    ROWS_MERGED = "The table has the rows in the open transaction. The warehouse aborts it."
    LOAD_COMMITTED = "Table and state are committed. The next task continues after them."

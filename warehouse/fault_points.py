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


class WriterPoint(Point):
    """A point in the protocol of a partition whose messages become objects, in the order of its steps. The value says
    what holds if the process dies there, and what the partition's next task does.
    """

    WRITER_FENCED = "The producer is initialised, which fenced the partition's former task. Nothing more has happened."
    OFFSET_READ = "The committed offset has been read. Nothing has been done."
    BATCH_INTENT_READ = "The intent that begins at the committed offset has been read. The next task finishes it."
    MESSAGES_TAKEN = "Messages are in memory. The next task reads them again."
    BATCH_DECIDED = "The end of a batch is decided in memory only. The next task may decide another one."
    BATCH_INTENT_STORED = "The intent is stored, and no object. The next task makes all objects of the intent."
    OBJECT_IN_STORE = "An object has no name in the store yet. The next task stores it again."
    OBJECT_STORED = "Some objects of the batch are stored. The next task keeps them, and makes the others."
    ALL_OBJECTS_STORED = "All objects of the batch are stored without a signal. The next task keeps them."
    SIGNAL_SENT = "The signal is in an open transaction, which the next task aborts. All objects are stored."
    SIGNAL_OFFSET_SENT = "Signal and offset are part of the open transaction, which the next task aborts."
    SIGNAL_COMMITTED = "The signal and the offset are committed. The next task continues after them."

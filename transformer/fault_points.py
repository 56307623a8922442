"""The fault points of a transformer's task (stream_runtime.fault_points)."""

from __future__ import annotations

from stream_runtime.fault_points import Point


class TransformPoint(Point):
    """A point in the protocol of a transformer's task of one source partition, in the order of its steps. The value
    says what holds if the process dies there, and what the partition's next task does.
    """

    TASK_OPENING = "Nothing has happened."
    TASK_FENCED = "The producer is initialised, which fenced the partition's former task. Nothing more has happened."
    OFFSET_READ = "The committed offset has been read. Nothing has been done."
    POLLED = "Messages are read, and nothing else has happened. The next task reads them again."
    SCHEMAS_REGISTERED = (
        "The target's schemas are registered. Its topic may not exist yet. The next task gets the same ids."
    )
    TRANSFORMED = "A chunk's messages are transformed in memory only."
    SOME_SENT = "Some of a chunk's messages are in an open transaction, which the next task aborts."
    ALL_SENT = "All of a chunk's messages are in an open transaction, which the next task aborts."
    OFFSET_SENT = "The offset is part of the open transaction, which the next task aborts."
    CHUNK_COMMITTED = "Messages and offset are committed. The next task continues after them."

"""The fault points of a rebuild (stream_runtime.fault_points)."""

from __future__ import annotations

from stream_runtime.fault_points import Point


class JoinRebuildPoint(Point):
    """A point in `cassandra-joinery rebuild`, in the order of its steps. The value says what holds if the process dies
    there, and what the next run does.
    """

    PARTITION_MARKED = "A partition is stopped by its position, others may not be. The next run marks all again."
    INPUTS_LOADED = "The rows are in a temporary folder, which is lost. The next run loads them again."
    CHANGES_SENT = "Some changes of joined rows are sent. The next run finds them in the target, and sends the others."
    STATE_STORED = "The state of a partition is stored under a version that no position names. It is deleted later."
    PARTITION_CONTINUES = "A partition has its new state, others are stopped. The next run makes all states again."

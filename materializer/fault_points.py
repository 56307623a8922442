"""The fault points of the commands that work on states (stream_runtime.fault_points)."""

from __future__ import annotations

from stream_runtime.fault_points import Point


class ReshardPoint(Point):
    """A point in the steps of `state reshard`, in their order. The value says what holds if the process dies there, and
    what the next run does.
    """

    AFTER_CATCH_UP = (
        "The old raw partitions are folded up to the first message that needs the new ones. Nothing else has changed. "
        "The next run finds that message again."
    )
    AFTER_MARK = (
        "Some positions are marked, which stops the topic's raw partitions in the job. The state is unchanged. The "
        "next run marks all positions."
    )
    IN_REDISTRIBUTION = "Some new states are stored that no position names. The next run stores others."
    BEFORE_SWITCH = "All new states are stored, but no position names them. The next run stores others."
    IN_COMMIT = "All positions are in an open transaction, which the next run aborts."
    AFTER_SWITCH = "The new states are committed. The next run folds the backlog of raw messages."
    IN_FOLD = "A fold's messages and its position are in an open transaction, which the next run aborts."
    IN_BACKLOG = "Some of the backlog is folded. The next run folds all of it again, which changes nothing twice."
    AFTER_FINISH = "Everything is done. The next run has nothing to do."


class RebuildPoint(Point):
    """A point in the steps of `rebuild`, in their order. The value says what holds if the process dies there, and what
    the next run does.
    """

    POSITION_MARKED = (
        "Some positions are moved after all raw messages and marked, which stops the topic's raw partitions in the "
        "job. The next run keeps these and sets the others."
    )
    ROWS_SENT = "The deletions of some rows are in an open transaction, which the next run aborts. It sends them again."
    ROWS_ENDED = "Consumers of the change topic have no rows. The next run finds no rows to delete."
    STATE_DELETED = "Some states are deleted. The next run deletes the others."
    STATE_BEGUN = "Some new states are stored. The next run deletes them and stores them again."
    POSITIONS_SENT = "The positions without marks are in an open transaction, which the next run aborts."
    REBUILD_DONE = "Everything is done. Another run rebuilds the table once more."

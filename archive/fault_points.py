"""The fault points of an archive's cut (stream_runtime.fault_points)."""

from __future__ import annotations

from stream_runtime.fault_points import Point


class ArchivePoint(Point):
    """A point in the protocol of an archived share, in the order of its steps. The value says what holds if the process
    dies there, and what the share's next task does.
    """

    SHARE_OPENING = "Nothing has happened."
    SHARE_FENCED = "The producer is initialised, which fenced the share's former task. Nothing more has happened."
    POSITIONS_READ = "The committed offsets have been read. Nothing has been done."
    FIRST_OFFSETS_COMMITTED = (
        "The offsets of new partitions are committed, and the share's cuts are numbered from them."
    )
    INTENT_READ = "The intent that begins at the committed offsets has been read. The next task finishes it."
    BATCH_SPILLED = "Messages are spilled to the worker's disk. The next task reads them again."
    CUT_DECIDED = "The end of a cut is decided in memory only. The next task may decide another one."
    INTENT_STORED = "The intent is stored, and no file. The next task makes all files of the intent."
    FILE_MADE = "A file of the cut is made on the worker's disk. The next task makes it again."
    IN_STORE = "A file has a temporary name in the store, which is never read. The next task stores it again."
    FILE_STORED = "Some files of the cut are stored. The next task keeps them, and makes the others."
    ALL_FILES_STORED = "All files of the cut are stored without an event. The next task keeps them."
    DEAD_LETTERS_SENT = "Dead letters are in an open transaction, which the next task aborts. It sends them again."
    EVENT_SENT = "The file event is in an open transaction, which the next task aborts. All files are stored."
    CUT_OFFSETS_SENT = "Event and offsets are part of the open transaction, which the next task aborts."
    CUT_COMMITTED = "The file event and the offsets are committed. The next task continues after them."

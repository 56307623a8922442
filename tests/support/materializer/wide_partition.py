"""Writes to one wide Cassandra partition, and settings under which the fold splits what reaches all its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.deletion import NO_DELETION_TIME, NO_TTL, LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from tests.support.materializer.brute_model import Write
from tests.support.materializer.fold_checks import NEVER_PURGE
from tests.support.materializer.raw_builder import int_bytes
from tests.support.materializer.table_writes import BASE_S, BASE_US, PARTITIONS

if TYPE_CHECKING:
    from materializer.rows.settings import FoldSettings

KEY = PARTITIONS[0]
ROWS = 10


def bounded(most: int, fold_settings: FoldSettings = NEVER_PURGE) -> FoldSettings:
    return fold_settings._replace(max_changes=most)


def insert(c: int, *, ttl: int = 0) -> Write:
    end = (BASE_S + ttl, ttl) if ttl else (NO_DELETION_TIME, NO_TTL)
    liveness = LivenessInfo(BASE_US, ttl, BASE_S + ttl) if ttl else LivenessInfo(BASE_US)
    return Write(KEY, "row", Row((int_bytes(c),), {"a": Cell(BASE_US, b"x", *end)}, liveness))


def static(text: bytes, timestamp: int) -> Write:
    return Write(KEY, "static", Row((), {"st": Cell(timestamp, text)}))

"""Segments as the publisher's native core splits them, and as the Python code does, which Cassandra's reader judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cdc_native
from cassandra_storage.files.codecs import SegmentCodecs
from dev.verify.oracle.judge import Tally
from tests.support.publisher.both_readers import Comparison, Read
from tests.support.publisher.chosen_tables import ChosenTables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata


def judge_batches(path: Path, tables: Mapping[bytes, TableMetadata], keys: Mapping[str, bytes]) -> Tally:
    """All raw messages of the segment, byte for byte. Nothing is compared without the compiled core."""
    tally = Tally()
    if not cdc_native.is_enabled():
        return tally
    published = {table_id for table_id, table in tables.items() if not table.keyspace.startswith("system")}
    comparison = Comparison(ChosenTables(tables, published), path.name, SegmentCodecs(keys))
    try:
        comparison.check(path.read_bytes(), Read())
    except AssertionError as error:
        tally.differ(str(error))
    tally.native = comparison.in_batches
    return tally

"""Updates that the vectors have none of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given

from cassandra_storage.commands.commitlog.summary import write_timestamps
from cassandra_storage.formats.json_forms.updates import update_json
from cassandra_storage.formats.merge.reconciliation import largest_timestamp
from cassandra_storage.formats.rows.deletion import DeletionTime, RowDeletion
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.row import Row
from tests.support.cassandra_storage.update_builder import Written, updates

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata


@given(updates())
def test_any_update_is_shown_and_hidden(written: Written) -> None:
    for with_values in (True, False):
        shown = update_json(written.update, with_values=with_values)
        text = json.dumps(shown)
        assert ('"value":' in text) <= with_values
        assert len(shown.get("rows", [])) == len(written.update.rows)
        assert len(shown.get("range_tombstones", [])) == len(written.update.range_tombstones)


@given(updates())
def test_write_timestamps(written: Written) -> None:
    update = written.update
    found = set(write_timestamps(update))
    rows = [*update.rows, *([] if update.static_row is None else [update.static_row])]
    largest = {largest_timestamp(row) for row in rows if not row.is_empty}
    assert largest - {-(2**63)} <= found
    assert {tombstone.deletion.marked_for_delete_at for tombstone in update.range_tombstones} <= found


def test_a_shadowable_deletion_says_so(plain_table: TableMetadata) -> None:
    row = Row((), {}, deletion=RowDeletion(DeletionTime(5, 6), is_shadowable=True))
    update = PartitionUpdate(plain_table, b"\x00\x00\x00\x01", rows=(row,))
    deletion = {"marked_for_delete_at": 5, "local_deletion_time": 6, "shadowable": True}
    assert update_json(update, with_values=False)["rows"] == [{"deletion": deletion, "columns": {}}]

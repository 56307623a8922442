"""When the filler wrote a row, as the publisher reads it from a mutation of the filler's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given

from cassandra_storage.formats.primitives.vint import write_int
from publisher.mutations.messages import Origin, split_into_messages
from tests.support.cassandra_storage.update_builder import VERSION, updates
from tests.support.publisher.chosen_tables import HOST, ChosenTables

if TYPE_CHECKING:
    from tests.support.cassandra_storage.update_builder import Written


@given(updates())
def test_it_is_the_first_rows_timestamp_or_none(written: Written) -> None:
    assume(written.update.rows)
    table_id = written.update.table.id.bytes
    chosen = ChosenTables({table_id: written.update.table}, set(), filler={table_id})
    origin = Origin(HOST, 1, "CommitLog-7-1.log", VERSION, 1)
    decoded = split_into_messages(write_int(1) + written.data, origin, chosen.schema())
    liveness = written.update.rows[0].liveness
    assert decoded.filler_written_at == (None if liveness.is_empty else liveness.timestamp)
    assert not decoded.messages

"""Mutations: several updates, all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cassandra_storage.formats.rows.mutation import first_table, only_table, read_mutation, read_updates, split_mutation
from cassandra_storage.formats.rows.partition_update import split_partition_update
from tests.support.cassandra_storage.update_builder import VERSION, Written, updates

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata

mutations = st.lists(updates(), min_size=1, max_size=2, unique_by=lambda written: written.update.table.id)


def join(batch: list[Written]) -> tuple[bytes, dict[bytes, TableMetadata]]:
    data = bytes((len(batch),)) + b"".join(written.data for written in batch)
    return data, {written.update.table.id.bytes: written.update.table for written in batch}


@given(mutations)
def test_round_trip(batch: list[Written]) -> None:
    data, tables = join(batch)
    assert read_mutation(data, VERSION, tables) == tuple(written.update for written in batch)
    expected = [split_partition_update(written.data, 0, VERSION, tables) for written in batch]
    assert split_mutation(data, VERSION, tables) == [(table, parts) for parts, table, _ in expected]


@given(mutations, st.data())
def test_damaged(batch: list[Written], data: st.DataObject) -> None:
    written, tables = join(batch)
    changed = bytearray(written)
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    cut = bytes(changed[: data.draw(st.integers(0, len(changed)))])
    for read in (read_mutation, split_mutation):
        try:
            read(cut, VERSION, tables)
        except FormatError:
            continue
        assert len(cut) == len(written)


@given(mutations)
def test_wrong_lengths(batch: list[Written]) -> None:
    data, tables = join(batch)
    for wrong in (data[:-1], data + b"\x00", b"\x00", b"", b"\xff" * 9):
        for read in (read_mutation, split_mutation):
            with pytest.raises(FormatError):
                read(wrong, VERSION, tables)


@given(mutations)
def test_unknown_table_takes_the_whole_mutation(batch: list[Written]) -> None:
    data, tables = join(batch)
    missing = batch[-1].update.table.id.bytes
    del tables[missing]
    for read in (read_mutation, split_mutation):
        with pytest.raises(UnknownTableError) as raised:
            read(data, VERSION, tables)
        assert raised.value.table_id == missing


@given(mutations)
def test_only_table(batch: list[Written]) -> None:
    data, tables = join(batch)
    assert only_table(data) == (next(iter(tables)) if len(batch) == 1 else None)


@given(mutations)
def test_updates_with_their_sizes(batch: list[Written]) -> None:
    data, tables = join(batch)
    updates = read_updates(data, VERSION, tables)
    assert tuple(update for update, _ in updates) == read_mutation(data, VERSION, tables)
    assert [size for _, size in updates] == [len(written.data) for written in batch]
    assert first_table(data) == batch[0].update.table.id.bytes

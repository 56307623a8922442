"""The core keeps nothing of a chunk, and loses no memory on the ways out."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError
from cdc_common.messages.tables import canonical, digest
from materializer.fold.chunk import fold_chunk
from materializer.rows.keys import PARTITION, ROWS_SECTION, split_data_key
from materializer.rows.native_plan import IS_NATIVE
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS
from tests.support.materializer.both_folds import encoder_of
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.odd_messages import NOW_S
from tests.support.materializer.plain_messages import PlainTable
from tests.support.materializer.raw_builder import catalog_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="the native core is not compiled, or turned off")


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Off: what is free is free by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@cache
def table_of(seed: int) -> PlainTable:
    """One object for each seed: codecs are kept by the table's identity."""
    return PlainTable(random.Random(seed))


@cache
def chunks_of(seed: int) -> list[list[RawRecord]]:
    """Two chunks, made once: Avro's reader, which makes messages here, loses memory where it fails."""
    table = table_of(seed)
    return [[table.record(20 * chunk + at, NOW_S * 1000 + at) for at in range(20)] for chunk in range(2)]


def folded(seed: int, state: MemoryState, chunk: int = 0) -> ChunkResult:
    table = table_of(seed)
    encoder = encoder_of(table.table)
    catalog = replace(catalog_of(table.table), encoders={digest(canonical(table.table)): encoder})
    result = fold_chunk(state, chunks_of(seed)[chunk], catalog, DEFAULT_FOLD_SETTINGS)
    for change in result.changes:
        if hasattr(change, "row_change"):
            change.row_change()
    return result


def test_a_chunks_memory_is_free_when_it_ends() -> None:
    native = 0
    for seed in range(20):
        state = MemoryState()
        reader = weakref.ref(state)
        result = folded(seed, state)
        native += result.native
        del state, result
        assert reader() is None, seed
    assert native > 50


def test_no_memory_is_lost() -> None:
    """Also where the state is damaged, and a chunk is given up."""

    def rounds(count: int) -> None:
        for _ in range(count):
            for seed in range(10):
                state = MemoryState()
                try:
                    state.apply(folded(seed, state).writes)
                    for key, value in state.data.items():
                        if key.startswith(PARTITION) and split_data_key(key)[1] == ROWS_SECTION:
                            state.data[key] = value[: len(value) // 2]
                    folded(seed, state, 1)
                except (CdcError, FormatError, ValueError, AssertionError, IndexError):
                    continue
        gc.collect()

    def growth() -> int:
        before = sys.getallocatedblocks()
        rounds(10)
        return sys.getallocatedblocks() - before

    rounds(5)
    # Caches fill, and other threads of the process allocate. A leak of one block a chunk would be 200 each time.
    assert min(growth() for _ in range(4)) < 150

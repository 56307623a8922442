"""Whatever a raw message holds, the fold gives a result or an error with a code, and every change can be written."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import ChangeEncoder
from materializer.fold.chunk import fold_chunk
from materializer.rows.settings import FoldSettings
from tests.support.materializer.fold_checks import EXAMPLES
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.odd_messages import NOW_S, OddTable
from tests.support.materializer.raw_builder import catalog_of

if TYPE_CHECKING:
    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from materializer.rows.catalog import TableCatalog

# A damaged message may name another schema, a later format, or have the flag of a shadowable deletion.
EXPECTED = {Code.SCHEMA_UNKNOWN, Code.STATE_FORMAT, Code.NOT_SUPPORTED}


@settings(max_examples=10 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_any_message_is_folded_dead_lettered_or_refused_with_a_code(seed: int) -> None:
    check_any_message(seed)


def check_any_message(seed: int) -> None:
    rng = random.Random(seed)
    odd = OddTable(rng)
    catalog, state = catalog_of(odd.table), MemoryState()
    encoder = ChangeEncoder(odd.table, "cdc", 1, 2, forms=EXACT)
    fold_settings = FoldSettings(
        reorder_ms=rng.choice((0, 3000)),
        purge_margin_seconds=0,
        max_dead_letters=1000,
        max_changes=rng.choice((2, 40_000)),
    )
    now_ms = rng.choice((0, NOW_S * 1000, 2**33 * 1000))
    for _ in range(8):
        records = []
        for offset in range(rng.randint(1, 4)):
            now_ms += rng.choice((0, 1, 1000, 4000))
            records.append(odd.record(offset, now_ms))
        while records:
            result = folded(state, records, catalog, fold_settings)
            if result is None:
                records = records[1:]
                continue
            state.apply(result.writes)
            for change in result.changes:
                encoder.encode(change)
            records = records[len(records) - result.left :]


def folded(
    state: MemoryState, records: list[RawRecord], catalog: TableCatalog, fold_settings: FoldSettings
) -> ChunkResult | None:
    """None if the chunk is refused with a code that stops the raw partition."""
    try:
        return fold_chunk(state, records, catalog, fold_settings)
    except CdcError as error:
        if error.code not in EXPECTED:
            raise
        return None

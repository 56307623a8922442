"""`make bench NAME=fold`: what each kind of write costs the fold, beside a plain INSERT, and the native core's share.

One process folds chunk after chunk over a real RocksDB. Only `fold_chunk` is timed: decoding, merging, images, messages
and what it reads of RocksDB. Half of each load makes the rows, the other half, which is measured, writes the kind.
"""

from __future__ import annotations

import gc
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cassandra_storage.formats.schema.compact_tables import as_selected
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import ChangeEncoder
from dev.bench.kinds import KINDS
from dev.bench.raw_load import LOADS, make_messages
from dev.bench.results import Figures, medians, report
from materializer.fold.chunk import fold_chunk
from materializer.records import RawRecord
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import next_version
from tests.support.materializer.raw_builder import catalog_of

if TYPE_CHECKING:
    from dev.bench.raw_load import Load

CHUNK = 10_000
ALL = {**KINDS, "mixed": LOADS["mixed"]}


@click.command()
@click.option("--updates", default=100_000, show_default=True, help="Of each load; half of them are measured.")
@click.option("--rounds", default=3, show_default=True, help="The figures are medians.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(ALL)), help="Only these.")
def main(updates: int, rounds: int, kinds: tuple[str, ...]) -> None:
    """Measure what each kind of write costs the fold."""
    figures: dict[str, list[Figures]] = {}
    for _ in range(rounds):
        for name in kinds or ALL:
            figures.setdefault(name, []).append(measure(ALL[name], updates))
    rows = {name: medians(figure) for name, figure in figures.items()}
    if "plain" in rows:
        for found in rows.values():
            found["times plain"] = round(found["cpu_us"] / rows["plain"]["cpu_us"], 2)
    report(
        "fold", f"The fold of {updates:,} updates, medians of {rounds}", rows, {"updates": updates, "rounds": rounds}
    )


def measure(load: Load, updates: int) -> Figures:
    catalog = catalog_of(load.table)
    encoders = {
        digest: ChangeEncoder(as_selected(table), "cdc", 1, 2, forms=EXACT)
        for (_, digest), table in catalog.schemas.items()
    }
    catalog = replace(catalog, encoders=encoders)
    now_ms = int(time.time() * 1000)
    records = [
        RawRecord(*make_message, offset, now_ms) for offset, make_message in enumerate(make_messages(load, updates))
    ]
    native = changes = 0
    seconds = 0.0
    with tempfile.TemporaryDirectory(prefix="bench-fold-") as folder:
        state = open_local_store(Path(folder))
        gc.collect()
        gc.freeze()
        gc.disable()  # as a worker does within a chunk
        for start in range(0, updates, CHUNK):
            began = time.process_time()
            result = fold_chunk(state, records[start : start + CHUNK], catalog)
            taken = time.process_time() - began
            assert not result.left
            head = Head(next_version(state.version), start, result.now_ms, 1)
            state.apply(Changelog(head, state.version, 0, result.writes))
            if start >= updates // 2:
                seconds, native, changes = seconds + taken, native + result.native, changes + len(result.changes)
            del result
            gc.collect(0)
        gc.enable()
        gc.unfreeze()
        state.close()
    measured = updates - updates // 2
    return {
        "cpu_us": 1e6 * seconds / measured,
        "changes_per_update": changes / measured,
        "native_percent": 100 * native / measured,
    }


if __name__ == "__main__":
    main()

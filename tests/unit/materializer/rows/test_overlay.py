"""The overlay over a committed state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from materializer.rows.overlay import Overlay
from tests.support.materializer.memory_state import MemoryState

SPACE = [bytes([byte]) for byte in range(12)]

keys = st.sampled_from(SPACE)


@given(
    st.dictionaries(keys, st.binary(max_size=2)),
    st.lists(st.tuples(keys, st.none() | st.binary(max_size=2))),
    keys,
    keys,
)
def test_an_overlay_reads_as_the_state_will_after_its_writes(
    committed: dict[bytes, bytes], writes: list[tuple[bytes, bytes | None]], start: bytes, end: bytes
) -> None:
    state = MemoryState()
    state.apply(committed)
    overlay = Overlay(state)
    overlay.prefetch(set(SPACE[:3]))
    for key, value in writes:
        overlay.put(key, value)
    after = MemoryState()
    after.apply(committed)
    after.apply(overlay.writes)
    assert list(overlay.scan(start, end)) == list(after.scan(start, end))
    assert overlay.last(start, end) == next(after.scan_back(start, end), None)
    assert [overlay.get(key) for key in SPACE] == after.get_many(SPACE)


def test_rows_may_be_written_while_they_are_scanned() -> None:
    state = MemoryState()
    state.apply(dict.fromkeys(SPACE, b"old"))
    overlay = Overlay(state)
    seen = []
    for key, value in overlay.scan(SPACE[2], SPACE[6]):
        seen.append(value)
        overlay.put(key, b"new" if key != SPACE[4] else None)
    assert seen == [b"old"] * 4
    assert [value for _, value in overlay.scan(SPACE[2], SPACE[6])] == [b"new"] * 3

"""The overlay over a committed state."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from materializer.rows import written_keys
from materializer.rows.keys import partition_prefix
from materializer.rows.overlay import Overlay
from tests.support.materializer.memory_state import MemoryState

PREFIXES = [partition_prefix(key) for key in (b"", b"\x00", b"a", b"ab")]
SPACE = [
    *(bytes([byte]) for byte in range(12)),
    *(prefix + rest for prefix in PREFIXES for rest in (b"", b"\x00", b"\x03a", b"\x03b", b"\x04")),
    *(b"p", b"p\x00\x00\x00\x09short", b"q", b"x" + bytes(8), b"y"),
]

keys = st.sampled_from(SPACE)
values = st.none() | st.binary(max_size=2)


@given(
    st.dictionaries(keys, st.binary(max_size=2)),
    st.lists(st.lists(st.tuples(keys, values), max_size=8), max_size=4),
    st.lists(st.tuples(keys, keys), min_size=1, max_size=6),
    st.sampled_from([0, 2, 1000]),
)
def test_an_overlay_reads_as_the_state_will_after_its_writes(
    committed: dict[bytes, bytes],
    rounds: list[list[tuple[bytes, bytes | None]]],
    scans: list[tuple[bytes, bytes]],
    many: int,
) -> None:
    state = MemoryState()
    state.apply(committed)
    overlay = Overlay(state)
    overlay.prefetch(set(SPACE[:3]))
    after = MemoryState()
    after.apply(committed)
    with patch.object(written_keys, "_MANY", many):
        for writes in rounds:
            for key, value in writes:
                overlay.put(key, value)
            after.apply(overlay.writes)
            for start, end in scans:
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

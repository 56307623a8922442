"""Merging counter contexts; dev/verify/oracle asks Cassandra itself."""

from __future__ import annotations

import struct
from functools import reduce
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.counter import clear_marked, merge_contexts, total

if TYPE_CHECKING:
    from random import Random

GLOBAL, LOCAL, REMOTE = "global", "local", "remote"
Shard = tuple[int, str, int, int]  # id, kind, clock, count


def context(*shards: Shard) -> bytes:
    header = [
        index - 2**15 if kind == GLOBAL else index for index, (_, kind, _, _) in enumerate(shards) if kind != REMOTE
    ]
    body = b"".join(struct.pack(">16sqq", bytes([id_]) * 16, clock, count) for id_, _, clock, count in shards)
    return struct.pack(f">h{len(header)}h", len(header), *header) + body


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        ((GLOBAL, 2, 10), (GLOBAL, 1, 99), (GLOBAL, 2, 10)),
        ((GLOBAL, 2, 10), (GLOBAL, 2, 11), (GLOBAL, 2, 11)),
        ((GLOBAL, 1, 10), (LOCAL, 5, 50), (GLOBAL, 1, 10)),
        ((GLOBAL, 1, 10), (REMOTE, 5, 50), (GLOBAL, 1, 10)),
        ((LOCAL, 1, 10), (LOCAL, 2, 20), (LOCAL, 3, 30)),
        ((LOCAL, 1, 10), (REMOTE, 5, 50), (LOCAL, 1, 10)),
        ((REMOTE, 1, 10), (REMOTE, 2, 5), (REMOTE, 2, 5)),
        ((REMOTE, 2, 10), (REMOTE, 2, 5), (REMOTE, 2, 10)),
        ((REMOTE, -1, 10), (REMOTE, 1, 5), (REMOTE, -1, 10)),
        ((REMOTE, -2, 10), (REMOTE, -1, 5), (REMOTE, -2, 10)),
        ((LOCAL, 1, 2**63 - 1), (LOCAL, 1, 1), (LOCAL, 2, -(2**63))),
    ],
)
def test_two_shards_of_one_node(
    left: tuple[str, int, int], right: tuple[str, int, int], merged: tuple[str, int, int]
) -> None:
    for first, second in ((left, right), (right, left)):
        assert merge_contexts(context((1, *first)), context((1, *second))) == context((1, *merged))


def test_shards_of_several_nodes() -> None:
    left = context((1, GLOBAL, 1, 1), (3, REMOTE, 1, 3))
    right = context((2, LOCAL, 1, 2), (3, GLOBAL, 1, 4))
    merged = merge_contexts(left, right)
    assert merged == context((1, GLOBAL, 1, 1), (2, LOCAL, 1, 2), (3, GLOBAL, 1, 4))
    assert total(merged) == 7


def test_a_context_that_has_all_is_given_back() -> None:
    everything, part = context((1, GLOBAL, 2, 5), (2, GLOBAL, 1, 1)), context((1, GLOBAL, 1, 4))
    assert merge_contexts(everything, part) is everything
    assert merge_contexts(part, everything) is everything


def test_a_total_wraps_as_a_long() -> None:
    assert total(context((1, GLOBAL, 1, 2**63 - 1), (2, GLOBAL, 1, 1))) == -(2**63)


def test_a_header_may_be_marked_for_its_local_shards_to_be_cleared() -> None:
    plain = context((1, LOCAL, 1, 3), (2, GLOBAL, 1, 4))
    assert total(b"\xff\xfe" + plain[2:]) == 7
    assert merge_contexts(b"\xff\xfe" + plain[2:], context((1, LOCAL, 1, 1))) == context(
        (1, LOCAL, 2, 4), (2, GLOBAL, 1, 4)
    )


global_contexts = st.dictionaries(st.integers(1, 4), st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=4).map(
    lambda shards: context(*((id_, GLOBAL, *numbers) for id_, numbers in sorted(shards.items())))
)


@given(st.lists(global_contexts, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_merging_is_a_join(contexts: list[bytes], random: Random) -> None:
    shuffled = [*contexts, *contexts]
    random.shuffle(shuffled)
    assert reduce(merge_contexts, shuffled) == reduce(merge_contexts, contexts)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_give_a_counter_or_a_format_error(value: bytes) -> None:
    try:
        expected = total(value)
    except FormatError:
        with pytest.raises(FormatError):
            merge_contexts(value, value)
    else:
        assert total(merge_contexts(value, context())) == expected


def test_local_shards_of_a_marked_context_become_remote_ones() -> None:
    """CounterContext.clearAllLocal where shouldClearLocal; the reader does it with a cell's value."""
    plain = context((1, GLOBAL, 1, 1), (2, LOCAL, 1, 2), (3, REMOTE, 1, 3))
    marked = (-2).to_bytes(2, "big", signed=True) + plain[2:]
    assert clear_marked(plain) is plain
    assert clear_marked(marked) == context((1, GLOBAL, 1, 1), (2, REMOTE, 1, 2), (3, REMOTE, 1, 3))
    all_global = (-1).to_bytes(2, "big", signed=True) + context((1, GLOBAL, 1, 1))[2:]
    assert clear_marked(all_global) is all_global
    with pytest.raises(FormatError):
        clear_marked(b"\x00")

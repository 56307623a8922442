"""The contract of a commit protocol (stream_runtime.exactly_once.commits), which each implementation must keep.

CONTRACT lists its sentences. Each is a function of a store.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest

from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.records import Message, Share, SourcePartition

if TYPE_CHECKING:
    from stream_runtime.exactly_once.commits import Commits

METADATA = json.dumps({"a": "field"})


class Store(Protocol):
    """A store with an implementation of the protocol, for one topic of three partitions."""

    fenced: tuple[type[Exception], ...]
    """The exceptions with which the commit of a fenced instance may end."""

    @property
    def topic(self) -> str: ...

    def open(self, share: Share, /) -> Commits: ...

    def keys(self) -> list[bytes]:
        """The keys of all committed messages, in their order."""
        ...


class Opened:
    """An instance for a share of these partitions of the topic."""

    def __init__(self, store: Store, *numbers: int) -> None:
        self._store = store
        self._parts = {number: SourcePartition(store.topic, number) for number in numbers}
        partitions = tuple(self._parts.values())
        name = f"{store.topic}/{'+'.join(map(str, numbers))}"
        share = Share(store.topic, partitions, str(partitions[0]) if len(partitions) == 1 else name)
        self.commits = store.open(share)

    def stored(self, number: int) -> StoredOffset | None:
        return self.commits.read()[self._parts[number]]

    def offset(self, number: int) -> int:
        """Nothing is before the offset 0, nor if there is none."""
        stored = self.stored(number)
        return 0 if stored is None else stored.offset

    def commit(self, key: bytes, **offsets: int) -> None:
        """Commit a message with offsets: `p1=5` is that of partition 1."""
        self.commits.send(Message(f"{self._store.topic}.target", 0, key, b"value"))
        self.commits.commit(
            {self._parts[int(name[1:])]: StoredOffset(offset, METADATA) for name, offset in offsets.items()}
        )

    def check_fenced(self, **offsets: int) -> None:
        before = self._store.keys()
        with pytest.raises(self._store.fenced):
            self.commit(b"of a fenced instance", **offsets)
        self.commits.close()
        assert self._store.keys() == before


def check_that_a_commit_is_read_by_the_next_instance(store: Store) -> None:
    first = Opened(store, 0)
    assert first.stored(0) is None
    first.commits.send(Message(f"{store.topic}.target", 0, b"a", None))
    first.commit(b"b", p0=2)
    first.commit(b"c", p0=3)
    assert first.offset(0) == 3
    first.commits.close()
    stored = Opened(store, 0).stored(0)
    assert stored is not None
    assert (stored.offset, json.loads(stored.metadata)) == (3, {"a": "field"})
    assert store.keys() == [b"a", b"b", b"c"]


def check_that_a_commit_moves_only_its_own_partitions(store: Store) -> None:
    share = Opened(store, 0, 1, 2)
    assert [share.offset(number) for number in range(3)] == [0, 0, 0]
    share.commit(b"a", p0=3)
    share.commit(b"b", p1=4, p2=5)
    again = Opened(store, 0, 1, 2)
    assert [again.offset(number) for number in range(3)] == [3, 4, 5]
    for number in range(3):
        stored = again.stored(number)
        assert stored is not None
        assert json.loads(stored.metadata)["a"] == "field"


def check_that_uncommitted_messages_are_given_up(store: Store) -> None:
    first = Opened(store, 0)
    first.commits.read()
    first.commits.send(Message(f"{store.topic}.target", 0, b"a", b"value"))
    first.commits.close()
    assert Opened(store, 0).stored(0) is None
    assert store.keys() == []


def check_that_an_instance_fences_the_earlier_one(store: Store) -> None:
    older = Opened(store, 0)
    older.commit(b"a", p0=1)
    older.commits.send(Message(f"{store.topic}.target", 0, b"open", b"value"))
    newer = Opened(store, 0)
    assert newer.offset(0) == 1
    older.check_fenced(p0=2)
    newer.commit(b"b", p0=2)
    assert store.keys() == [b"a", b"b"]


def check_that_a_share_of_several_partitions_is_fenced_as_a_whole(store: Store) -> None:
    older = Opened(store, 0, 1)
    older.commit(b"a", p0=1, p1=1)
    newer = Opened(store, 0, 1)
    assert (newer.offset(0), newer.offset(1)) == (1, 1)
    older.check_fenced(p1=2)
    newer.commit(b"b", p1=2)
    assert store.keys() == [b"a", b"b"]


def check_that_a_larger_share_fences_the_smaller_ones(store: Store) -> None:
    zero, one = Opened(store, 0), Opened(store, 1)
    zero.commit(b"a", p0=1)
    one.commit(b"b", p1=2)
    both = Opened(store, 0, 1)
    assert (both.offset(0), both.offset(1)) == (1, 2)
    zero.check_fenced(p0=2)
    one.check_fenced(p1=3)
    both.commit(b"c", p0=2, p1=3)


def check_that_a_smaller_share_fences_the_larger_one(store: Store) -> None:
    both = Opened(store, 0, 1)
    assert both.offset(0) == 0
    both.commit(b"a", p0=1, p1=2)
    zero = Opened(store, 0)
    assert zero.offset(0) == 1
    both.check_fenced(p1=3)
    one = Opened(store, 1)
    assert one.offset(1) == 2
    zero.commit(b"b", p0=2)
    one.commit(b"c", p1=3)
    assert store.keys() == [b"a", b"b", b"c"]


def check_that_shares_that_overlap_fence_each_other(store: Store) -> None:
    first = Opened(store, 0, 1)
    assert first.offset(1) == 0
    second = Opened(store, 1, 2)
    assert second.offset(1) == 0
    first.check_fenced(p0=1)
    second.commit(b"a", p1=1, p2=1)
    third = Opened(store, 0, 1)
    assert (third.offset(0), third.offset(1)) == (0, 1)
    second.check_fenced(p2=2)


def check_that_a_share_that_has_committed_nothing_is_fenced_too(store: Store) -> None:
    small = Opened(store, 0)
    assert small.stored(0) is None
    large = Opened(store, 0, 1)
    assert large.offset(0) == 0
    small.check_fenced(p0=1)
    again = Opened(store, 0)
    assert again.offset(0) == 0
    large.check_fenced(p0=1)
    again.commit(b"a", p0=1)
    assert store.keys() == [b"a"]


CONTRACT = [value for name, value in list(globals().items()) if name.startswith("check_that_")]

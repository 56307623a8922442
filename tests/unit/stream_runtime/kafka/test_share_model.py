"""Workers that believe in different shares of some partitions copy each message once, whatever the order of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_runtime.kafka import commits
from stream_runtime.kafka.commits import KafkaCommits
from tests.support.stream_runtime.share_model import Producer, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_runtime.records import SourcePartition

SEEDS = 300


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_each_message_comes_out_once(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 100):
        run = Run(seed, monkeypatch)
        run.run()
        try:
            run.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def fence_nobody(patch: pytest.MonkeyPatch) -> None:
    """A producer commits whatever others have been made since."""

    def commit(self: Producer) -> None:
        self._kafka.steps.take()
        self._kafka.messages += self._messages
        self._kafka.offsets |= self._offsets

    patch.setattr(Producer, "commit", commit)


def take_nothing_over(patch: pytest.MonkeyPatch) -> None:
    """A share commits partitions that another one owns."""
    patch.setattr(commits, "_of_others", lambda *_: {})


def take_over_under_the_own_id(patch: pytest.MonkeyPatch) -> None:
    """The transaction that takes partitions over fences only the new owner."""

    def take_over(self: KafkaCommits, _owner: str, partitions: Sequence[SourcePartition]) -> None:
        found = self._offsets.stored(partitions)
        self.commit({partition: stored or self._first_offset(partition) for partition, stored in found.items()})

    patch.setattr(KafkaCommits, "_take_over", take_over)


def read_before_the_fence(patch: pytest.MonkeyPatch) -> None:
    """The owner's last offset is read before its producers are fenced."""

    def take_over(self: KafkaCommits, owner: str, partitions: Sequence[SourcePartition]) -> None:
        found = self._offsets.stored(partitions)
        producer = self._fence(owner)
        producer.begin()
        producer.send_offsets(
            self._owned({partition: stored or self._first_offset(partition) for partition, stored in found.items()})
        )
        producer.commit()

    patch.setattr(KafkaCommits, "_take_over", take_over)


@pytest.mark.parametrize(
    "seed_defect",
    [fence_nobody, take_nothing_over, take_over_under_the_own_id, read_before_the_fence],
    ids=lambda seed_defect: seed_defect.__name__,
)
def test_the_model_finds_a_defect(
    seed_defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_defect(monkeypatch)
    for seed in range(SEEDS):
        run = Run(seed, monkeypatch)
        run.run()
        try:
            run.check()
        except AssertionError:
            return
    raise AssertionError("no seed has found it")

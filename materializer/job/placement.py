"""Which worker has which raw partition: each for as long as it can, as many as the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.records import RawPartition


class Placement:
    """A partition that moves takes its producer, its state and what it has read ahead to be made anew: few move."""

    def __init__(self) -> None:
        self._places: dict[RawPartition, str] = {}

    def place(self, partitions: Sequence[RawPartition], workers: Sequence[str]) -> dict[str, list[RawPartition]]:
        """The partitions of each worker (at least one): none has two more than another."""
        shares: dict[str, list[RawPartition]] = {worker: [] for worker in sorted(workers)}
        homeless: list[RawPartition] = []
        for partition in sorted(partitions):
            share = shares.get(self._places.get(partition, ""))
            (homeless if share is None else share).append(partition)
        least, more = divmod(len(partitions), len(shares))
        for number, share in enumerate(sorted(shares.values(), key=len, reverse=True)):
            most = least + (number < more)
            homeless += share[most:]
            del share[most:]
        for partition in sorted(homeless):
            min(shares.values(), key=len).append(partition)
        self._places = {partition: worker for worker, share in shares.items() for partition in share}
        return shares

"""Which worker has which raw partition: as few moves as possible, the same number for each worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.records import RawPartition


class Placement:
    """Remembers where each raw partition was.

    A raw partition that moves costs a new producer, a restored state and messages that are read twice.
    """

    def __init__(self) -> None:
        self._workers: dict[RawPartition, str] = {}

    def assign(self, raw_partitions: Sequence[RawPartition], workers: Sequence[str]) -> dict[str, list[RawPartition]]:
        """The raw partitions of each worker. There is at least one worker; two workers differ by at most one."""
        assigned: dict[str, list[RawPartition]] = {worker: [] for worker in sorted(workers)}
        unassigned: list[RawPartition] = []
        for raw_partition in sorted(raw_partitions):
            own = assigned.get(self._workers.get(raw_partition, ""))
            (unassigned if own is None else own).append(raw_partition)
        least, more = divmod(len(raw_partitions), len(assigned))
        for number, own in enumerate(sorted(assigned.values(), key=len, reverse=True)):
            most = least + (number < more)
            unassigned += own[most:]
            del own[most:]
        for raw_partition in sorted(unassigned):
            min(assigned.values(), key=len).append(raw_partition)
        self._workers = {raw_partition: worker for worker, own in assigned.items() for raw_partition in own}
        return assigned

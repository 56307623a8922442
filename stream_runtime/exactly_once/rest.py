"""The rest of a source partition in its position's metadata: a restart opens no state to find out what has work."""

from __future__ import annotations

from typing import Any, NamedTuple

from stream_runtime.records import Rest

MOST_HOSTS = 200  # whose hashes fit into the metadata of an offset, which has at most 4,096 bytes by default


class Tidying(NamedTuple):
    """The versions that an idle state makes after its last change, so that files with former values are deleted. It
    makes them once more after RocksDB has rewritten its own files.
    """

    # How many versions it makes.
    versions: int
    # The time between two of them, in ms.
    pause_ms: float
    # The time after which RocksDB has rewritten its own files, in ms.
    old_values_ms: float

    def applied_to(self, rest: Rest, busy: tuple[int, int], version: int, stored_ms: int) -> Rest:
        """The rest, which ends when the next version is due. busy: as Position's. version, stored_ms: the number of the
        newest version, and its time.
        """
        made, since_ms = version - busy[0], busy[1]
        due_ms = stored_ms + self.pause_ms
        if made >= 2 * self.versions:
            return rest
        if made >= self.versions:
            due_ms = max(due_ms, since_ms + self.old_values_ms)
        return rest._replace(purge_ms=int(due_ms) if rest.purge_ms is None else min(int(due_ms), rest.purge_ms))


NO_TIDYING = Tidying(0, 0.0, 0.0)


def rest_to_json(rest: Rest | None) -> list[Any] | None:
    """None, which is safe, also for more hosts than fit."""
    if rest is None or len(rest.hosts) > MOST_HOSTS:
        return None
    hosts = "".join(f"{host:08x}" for host in sorted(rest.hosts))
    return [rest.due_ms, rest.purge_ms, hosts, rest.rules]


def rest_from_json(stored: Any) -> Rest | None:  # noqa: ANN401 - JSON
    """None if a build stored it that knows no rest. ValueError or TypeError if it is damaged."""
    if stored is None:
        return None
    due_ms, purge_ms, hosts, rules = stored
    known = frozenset(int(hosts[first : first + 8], 16) for first in range(0, len(hosts), 8))
    return Rest(_time(due_ms), _time(purge_ms), known, int(rules))


def _time(stored: Any) -> int | None:  # noqa: ANN401 - JSON
    return None if stored is None else int(stored)

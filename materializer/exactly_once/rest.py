"""The rest of a raw partition in its position's metadata: a restart opens no state to find out what has work."""

from __future__ import annotations

from typing import Any

from materializer.records import Rest

MOST_HOSTS = 200  # whose hashes fit into the metadata of an offset, which has at most 4,096 bytes by default


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

"""How far the snapshots of tables are, as running publishers say."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

from local_stack.process.network import LOCALHOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from local_stack.servers.programs import Program


class Snapshots:
    """What the publishers say of the snapshots of a keyspace's tables."""

    def __init__(self, publishers: Sequence[Program], names: Sequence[str]) -> None:
        self._publishers = publishers
        self._names = set(names)

    def are_over(self) -> bool:
        return all(self._over_at(each) >= self._names for each in self._publishers)

    def states(self) -> Counter[str]:
        return Counter(state for each in self._publishers for _, state in self._shown(each))

    def _over_at(self, publisher: Program) -> set[str]:
        return {name for name, state in self._shown(publisher) if state in {"ended", "given_up"}}

    def _shown(self, publisher: Program) -> list[tuple[str, str]]:
        return [(each["table"], each["state"]) for each in status_of(publisher).get("snapshots", ())]


def status_of(publisher: Program) -> dict[str, Any]:
    """Empty if it has just been killed."""
    url = f"http://{LOCALHOST}:{publisher.settings['publisher.operations_port']}/status"
    try:
        with urlopen(url, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except (URLError, OSError, ValueError):
        return {}

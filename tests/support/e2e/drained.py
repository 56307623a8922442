"""Reading every change of what was written so far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dev.local_stack.demo.demo import forget_seen

if TYPE_CHECKING:
    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.history import History
    from dev.local_stack.demo import shop

READ_SECONDS = 120.0


def read_all_changes(reader: ChangeReader, markers: shop.Markers, history: History) -> None:
    """Read until what is written now has come out of every raw partition."""
    awaited = markers.write()
    deadline = time.monotonic() + READ_SECONDS
    while awaited:
        assert time.monotonic() < deadline, f"{len(awaited)} raw partitions have not caught up"
        changes = reader.poll(0.2)
        history.add(changes)
        forget_seen(awaited, changes)

"""Where a registrar begins in the ledger, so that it need not read all of it at each start.

After each round the registrar stores the offsets below which every file event is in its tables, and the tables with
their own positions. The stored offsets count only if all these tables still have their positions: a table that was
dropped is made again from all events. A file that another driver has overwritten with older offsets is as good: each
table knows which events it has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.stores.store import Store

FORMAT_VERSION = 1


class Start(NamedTuple):
    """The state of a registrar after a round."""

    # Kafka's id of the topic of file events.
    topic_id: str
    # The layouts whose tables were kept.
    layouts: list[str]
    # The offset from which events may be in no table yet, by partition of that topic.
    offsets: dict[int, int]
    # The position of each table, by layout and name: the next offset that it does not have, by partition.
    tables: dict[str, dict[int, int]]

    def encode(self) -> bytes:
        return json.dumps({"format": FORMAT_VERSION, **self._asdict()}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Start:
        """ValueError, KeyError or TypeError if it is none."""
        stored = json.loads(data)
        if stored["format"] != FORMAT_VERSION:
            raise ValueError(f"format {stored['format']}")
        tables = {name: _numbers(offsets) for name, offsets in stored["tables"].items()}
        return cls(stored["topic_id"], list(stored["layouts"]), _numbers(stored["offsets"]), tables)


def read_start(store: Store, catalog: str, topic_id: str) -> Start:
    """The state that the registrars of a catalog have left; an empty one if it is damaged or of another topic."""
    try:
        start = Start.decode(store.read(_path(catalog)) or b"")
    except (ValueError, KeyError, TypeError, AttributeError):
        return Start(topic_id, [], {}, {})
    return start if start.topic_id == topic_id else Start(topic_id, [], {}, {})


def store_start(store: Store, catalog: str, start: Start) -> None:
    """CdcError of the store."""
    store.put(_path(catalog), start.encode())


def _path(catalog: str) -> str:
    return f"_archive/registrar/{catalog}.json"


def _numbers(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in offsets.items()}

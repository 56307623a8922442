"""The change topics that a state's changes go to, as the state records them.

The plan of a batch says where changes should go, and may say something else after a crash or in another worker. The
state says where they have gone so far. It changes only when all of its rows have moved (materializer.fold.topic_move).
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.topics import Topic
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import TOPICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader


class Published(NamedTuple):
    """The topic of a table's changes."""

    # The change topic.
    topic: Topic
    # The first raw message whose changes go to it.
    offset: int = 0


NO_TOPICS: Mapping[bytes, Published] = MappingProxyType({})
"""Where changes go that say it themselves."""


def read_published(state: StateReader | Overlay) -> dict[bytes, Published]:
    """Return what is published, by table id; empty for a state without rows. It has two entries while the rows of a
    table that was dropped and created again are deleted.
    """
    stored = state.get(TOPICS)
    if stored is None:
        return {}
    check_version(stored)
    entries = json.loads(stored[1:])
    return {
        bytes.fromhex(table_id): Published(Topic(name, partitions), offset)
        for table_id, name, partitions, offset in entries
    }


def encode_published(published: Mapping[bytes, Published]) -> bytes:
    entries = [[table_id.hex(), *entry.topic, entry.offset] for table_id, entry in published.items()]
    return VERSION_BYTE + json.dumps(entries, separators=(",", ":")).encode()

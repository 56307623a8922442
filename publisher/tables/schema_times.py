"""Remembers since when each table has had its schema, by the messages of the tables topic.

The digest of a schema leaves out what changes no row: comments, gc_grace_seconds, `cdc` itself. A statement that alters
only this gives the table a later time. The schema keeps its first one, since what was written between both statements
was written under that schema. A schema that comes back after another one counts from its return.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from cdc_common.messages.errors import MessageError
from cdc_common.messages.tables import DIGEST_SIZE, TABLE_ID_SIZE, from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from publisher.tables.published_table import PublishedTable


class SchemaTimes:
    """The times (µs) of the statements that made each schema."""

    def __init__(self) -> None:
        self._times: dict[bytes, dict[bytes, int]] = defaultdict(dict)  # by table id and digest

    def note(self, messages: Mapping[bytes, bytes]) -> None:
        """Take note of messages of the tables topic, by their keys."""
        for key, value in messages.items():
            if len(key) == TABLE_ID_SIZE + DIGEST_SIZE:
                with suppress(MessageError):  # the materializer reports it
                    self._times[key[:TABLE_ID_SIZE]][key[TABLE_ID_SIZE:]] = from_json(value).altered_at

    def since(self, table: PublishedTable) -> int:
        """The time at which the table got its schema."""
        altered_at = table.table.altered_at
        times = self._times.get(table.id, {})
        known = times.get(table.digest, altered_at)
        is_back = any(known < at <= altered_at for digest, at in times.items() if digest != table.digest)
        return altered_at if is_back else known

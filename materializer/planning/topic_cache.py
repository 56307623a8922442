"""The topics that the registry has assigned, in the checkpoint location.

A job that starts again while the registry is down continues with them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from materializer.planning.plan import ChangeTopic
from stream_runtime.errors import check_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.state.object_store import ObjectStore

FORMAT_VERSION = 1

SchemaKey = tuple[bytes, bytes]
"""A table's id, and the digest of one of its schemas."""


class TopicCache:
    """The change topics by schema, of each table. A table is `keyspace.table`. CdcError(CHECKPOINT_LOCATION).

    forms: those of the messages under the topics' schemas. Topics that were stored for other forms are not read.
    """

    def __init__(self, store: ObjectStore, group: str) -> None:
        self._store = store
        self._folder = f"{group}.topics"
        self._known: dict[tuple[str, str], Mapping[SchemaKey, ChangeTopic]] = {}

    def is_empty(self) -> bool:
        return not self._store.list(self._folder)

    def read(self, table: str, forms: str = "") -> Mapping[SchemaKey, ChangeTopic]:
        """Empty for an unknown table. CdcError(STATE_FORMAT) for a newer build's, or STATE_DAMAGED."""
        if (table, forms) not in self._known:
            stored = self._store.read(self._path(table))
            self._known[table, forms] = {} if stored is None else self._decoded(table, stored, forms)
        return self._known[table, forms]

    def write(self, table: str, topics: Mapping[SchemaKey, ChangeTopic], forms: str = "") -> None:
        """Store them durably, before a plan uses them."""
        if topics != self.read(table, forms):
            entries = [  # without Kafka's ids of the topics, which the planner looks up
                [table_id.hex(), digest.hex(), *topic[:-1]] for (table_id, digest), topic in topics.items()
            ]
            content = {"format": FORMAT_VERSION, "forms": forms, "topics": entries}
            text = json.dumps(content, separators=(",", ":"))
            self._store.write(self._path(table), text.encode())
            self._known[table, forms] = dict(topics)

    def names(self, table: str) -> set[str]:
        """The topics of a table, whatever the forms of their messages."""
        stored = self._store.read(self._path(table))
        return set() if stored is None else {topic.name for topic in self._decoded(table, stored, None).values()}

    def _path(self, table: str) -> str:
        return f"{self._folder}/{table}.json"

    def _decoded(self, table: str, stored: bytes, forms: str | None) -> Mapping[SchemaKey, ChangeTopic]:
        try:
            content = json.loads(stored)
            check_format(f"The assigned topics of {table}", int(content["format"]), FORMAT_VERSION)
            if forms is not None and content.get("forms") != forms:
                return {}
            return {
                (bytes.fromhex(table_id), bytes.fromhex(digest)): ChangeTopic(
                    str(name), int(partitions), int(key_id), int(value_id)
                )
                for table_id, digest, name, partitions, key_id, value_id in content["topics"]
            }
        except (ValueError, KeyError, TypeError) as error:
            path = self._store.full_path(self._path(table))
            raise CdcError(
                Code.STATE_DAMAGED,
                f"{path} does not hold the assigned topics of {table}.",
                "Delete it while the registry is up: the job asks the registry and stores the topics again.",
            ) from error

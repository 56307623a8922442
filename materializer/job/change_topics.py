"""Where each schema of a table is published: the version of its change topic, and the registry's ids.

A topic has one key schema for ever, and each of its value schemas reads the ones before. What does not fit goes to a
new version of the topic. The registry remembers which schema belongs to which: a schema is looked for there first.
"""

from __future__ import annotations

from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import structlog

from cassandra_storage.compact_tables import as_selected
from cassandra_storage.schema import TableMetadata
from cdc_messages.envelope import key_schema, schema_text, value_schema
from cdc_messages.renames import is_misread, with_aliases
from cdc_messages.resolution import can_read
from cdc_messages.tables import from_json
from cdc_messages.topics import change_topic
from cdc_program.errors import Code
from cdc_program.registry import IncompatibleSchemaError
from materializer.job.plan import Publication

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from materializer.job.plan import TableSchema

_logger = structlog.get_logger(__name__)


class Registry(Protocol):
    """cdc_program.registry.RegistryClient."""

    def register(self, subject: str, schema: dict[str, Any]) -> int: ...

    def lookup(self, subject: str, schema: dict[str, Any]) -> int | None: ...

    def has(self, subject: str) -> bool: ...


class _Schema(NamedTuple):
    """A table under one of its schemas, with the Avro schemas of its key and its value."""

    table: TableMetadata
    key: dict[str, Any]
    value: dict[str, Any]


class Publications:
    """Asks the registry and makes topics only for what is new."""

    def __init__(self, prefix: str, registry: Registry, make_topic: Callable[[str], int]) -> None:
        self._prefix = prefix
        self._registry = registry
        self._make_topic = make_topic
        self._known: dict[tuple[str, str], Publication] = {}

    def of(self, schemas: Sequence[TableSchema]) -> tuple[Publication | None, ...]:
        """What belongs to each of a table's schemas, which come from the oldest to the newest.

        The newest of each table id is registered, older ones only looked up: registering never goes backwards.
        CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED.
        """
        newest = {each.table_id: each.digest for each in schemas}
        known: list[_Schema] = []
        found: list[Publication | None] = []
        for each in schemas:
            described = self._describe(from_json(each.json), known)
            avoided = {
                publication.topic
                for earlier, publication in zip(known, found, strict=True)
                if publication is not None and not _follows(described.value, earlier.value)
            }
            found.append(self._find(described, avoided, is_newest=newest[each.table_id] == each.digest))
            known.append(described)
        return tuple(found)

    def _describe(self, table: TableMetadata, earlier: list[_Schema]) -> _Schema:
        shown = as_selected(table)
        value = value_schema(shown, self._prefix)
        former = [each.value for each in earlier if each.table.id == table.id]
        return _Schema(shown, key_schema(shown, self._prefix), with_aliases(value, former))

    def _find(self, schema: _Schema, avoided: set[str], *, is_newest: bool) -> Publication | None:
        texts = schema_text(schema.key), schema_text(schema.value)
        known = self._known.get(texts)
        if known is None:
            known = self._look_up(schema, avoided)
            if known is None and is_newest:
                known = self._register(schema, avoided)
            if known is not None:
                self._known[texts] = known
        return known

    def _look_up(self, schema: _Schema, avoided: set[str]) -> Publication | None:
        for topic, key_id in self._same_key(schema, avoided):
            value_id = self._registry.lookup(f"{topic}-value", schema.value)
            if value_id is not None:
                return Publication(topic, self._make_topic(topic), key_id, value_id)
        return None

    def _same_key(self, schema: _Schema, avoided: set[str]) -> list[tuple[str, int]]:
        """The versions of the topic that have this key schema, with its id, the latest version first."""
        topics = takewhile(lambda topic: self._registry.has(f"{topic}-key"), self._versions(schema.table))
        ids = ((topic, self._registry.lookup(f"{topic}-key", schema.key)) for topic in topics if topic not in avoided)
        return [(topic, key_id) for topic, key_id in ids if key_id is not None][::-1]

    def _register(self, schema: _Schema, avoided: set[str]) -> Publication:
        for topic, key_id in self._same_key(schema, avoided):
            try:
                value_id = self._registry.register(f"{topic}-value", schema.value)
            except IncompatibleSchemaError as error:
                _logger.info("schema does not follow", topic=topic, problem=error.problem)
            else:
                return Publication(topic, self._make_topic(topic), key_id, value_id)
        first = next(self._versions(schema.table))
        topic = next(each for each in self._versions(schema.table) if not self._registry.has(f"{each}-key"))
        value_id = self._registry.register(f"{topic}-value", schema.value)
        key_id = self._registry.register(f"{topic}-key", schema.key)
        if topic != first:
            table = schema.table.qualified_name
            _logger.warning("new version of a change topic", code=Code.TOPIC_VERSION.text, table=table, topic=topic)
        return Publication(topic, self._make_topic(topic), key_id, value_id)

    def _versions(self, table: TableMetadata) -> Iterator[str]:
        return (change_topic(self._prefix, table.keyspace, table.name, version) for version in count(1))


def _follows(value: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether readers with the value schema understand what was published with an earlier one."""
    return can_read(value, earlier) and not is_misread(value, earlier)

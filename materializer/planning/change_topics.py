"""Finds the change topic of each schema of a table: the topic's version and the ids in the schema registry.

A change topic keeps one key schema, and each of its value schemas can read the ones before. A schema that does not fit
gets a new version of the topic. The registry remembers which schema belongs to which topic, so it is searched first.
"""

from __future__ import annotations

import time
from itertools import takewhile
from typing import TYPE_CHECKING

import structlog

from cdc_common.clients.registry.errors import IncompatibleSchemaError
from cdc_common.errors.codes import Code
from cdc_common.messages.envelope import schema_text
from cdc_common.messages.tables import from_json
from cdc_common.messages.topics import change_topic, versions
from materializer.planning.avro_schemas import AvroSchemas, avro_schemas, can_follow
from materializer.planning.form_changes import check_forms
from materializer.planning.known_subjects import KnownSubjects
from materializer.planning.plan import ChangeTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.avro.type_forms import TypeForms
    from materializer.planning.plan import TableSchema
    from materializer.planning.registry import Registry

_logger = structlog.get_logger(__name__)


def new_schemas(schemas: Sequence[TableSchema], known: Sequence[ChangeTopic | None]) -> set[int]:
    """The places of the schemas to register: those after the last known one, so that a backlog's are all there, and the
    newest one of each table id. Not of one that was never the newest (decision 0019).

    A schema with the Avro schemas of an earlier one is known as that one: it does not tell that those between are older
    than what the registry has.
    """
    last_known = max(_first_places(known).values(), default=-1)
    newest = {schema.table_id: place for place, schema in enumerate(schemas)}
    times = {place: from_json(schema.json).altered_at for place, schema in enumerate(schemas)}
    has_times = bool(times) and times[len(times) - 1] > 0
    return {
        place
        for place in times
        if place in newest.values() or (place > last_known and (times[place] > 0 or not has_times))
    }


def _first_places(known: Sequence[ChangeTopic | None]) -> dict[tuple[str, int, int], int]:
    """The first place of each known topic and its Avro schemas."""
    places: dict[tuple[str, int, int], int] = {}
    for place, topic in enumerate(known):
        if topic is not None:
            places.setdefault((topic.name, topic.key_schema_id, topic.value_schema_id), place)
    return places


def avro_schemas_of(prefix: str, schemas: Sequence[TableSchema], forms: TypeForms) -> list[AvroSchemas]:
    """The Avro schemas of a table's schemas, which come from the oldest to the newest, in the table's forms."""
    avros: list[AvroSchemas] = []
    for schema in schemas:
        avros.append(avro_schemas(prefix, from_json(schema.json), avros, forms))
    return avros


def misread_topics(avros: Sequence[AvroSchemas], former: Sequence[ChangeTopic | None]) -> set[str]:
    """Those of the `former` schemas' topics whose messages readers of the following schema would misread, as after a
    user type's fields have swapped their names. The registry compares schemas by names, and does not see that.
    """
    avro = avros[len(former)]
    return {
        topic.name
        for before, topic in zip(avros, former, strict=False)
        if topic is not None and not can_follow(avro.value, before.value)
    }


class ChangeTopics:
    """Finds change topics in the registry. Registers schemas and creates topics only for new schemas."""

    def __init__(
        self,
        prefix: str,
        registry: Registry,
        make_topic: Callable[[str], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = prefix
        self._registry = registry
        self._make_topic = make_topic
        self._known: dict[tuple[str, str], ChangeTopic] = {}
        self._subjects = KnownSubjects(prefix, registry, clock)

    def check_reachable(self) -> None:
        """Raise CdcError if the registry does not answer."""
        self._registry.check_reachable()

    def find_or_create(self, schemas: Sequence[TableSchema], forms: TypeForms) -> tuple[ChangeTopic | None, ...]:
        """The change topic of each of a table's schemas, which come from the oldest to the newest.

        Schemas that are newer than all that the registry knows are registered in their order, and the newest one of
        each table id in any case. Others are only looked up: registering never goes back. CdcError REGISTRY_UNREACHABLE
        or REGISTRY_REFUSED, or FORM_CHANGED if the table's topic has other forms.
        """
        avros = avro_schemas_of(self._prefix, schemas, forms)
        is_checked = (schema_text(avros[-1].key), schema_text(avros[-1].value)) in self._known
        known = self._find_each(avros, frozenset())
        if not is_checked:
            self._check_forms(avros, known[-1])
        return self._find_each(avros, new_schemas(schemas, known))

    def _check_forms(self, avros: Sequence[AvroSchemas], newest: ChangeTopic | None) -> None:
        """Compare the forms with those of the table's last topic, unless that has the newest schema."""
        names = list(takewhile(lambda topic: self._subjects.has(f"{topic}-key"), self._topic_names(avros[-1].table)))
        if names and (newest is None or newest.name != names[-1]):
            check_forms(self._registry, names[-1], avros)

    def _find_each(self, avros: Sequence[AvroSchemas], new: Collection[int]) -> tuple[ChangeTopic | None, ...]:
        """new: the places of the schemas that are registered if they cannot be found."""
        topics: list[ChangeTopic | None] = []
        for place, avro in enumerate(avros):
            topics.append(self._find(avro, misread_topics(avros, topics), is_new=place in new))
        return tuple(topics)

    def _find(self, avro: AvroSchemas, excluded: set[str], *, is_new: bool) -> ChangeTopic | None:
        texts = schema_text(avro.key), schema_text(avro.value)
        found = self._known.get(texts)
        if found is None:
            found = self._look_up(avro, excluded)
            if found is None and is_new:
                found = self._register(avro, excluded)
            if found is not None:
                self._known[texts] = found
        return found

    def _look_up(self, avro: AvroSchemas, excluded: set[str]) -> ChangeTopic | None:
        for topic, key_id in self._topics_with_key(avro, excluded, self._subjects.has):
            value_id = self._registry.lookup(f"{topic}-value", avro.value)
            if value_id is not None:
                return ChangeTopic(topic, self._make_topic(topic), key_id, value_id)
        return None

    def _topics_with_key(
        self, avro: AvroSchemas, excluded: set[str], has: Callable[[str], bool]
    ) -> list[tuple[str, int]]:
        """The versions of the topic that have this key schema, each with the schema's id, the latest version first."""
        topics = takewhile(lambda topic: has(f"{topic}-key"), self._topic_names(avro.table))
        ids = ((topic, self._registry.lookup(f"{topic}-key", avro.key)) for topic in topics if topic not in excluded)
        return [(topic, key_id) for topic, key_id in ids if key_id is not None][::-1]

    def _register(self, avro: AvroSchemas, excluded: set[str]) -> ChangeTopic:
        for topic, key_id in self._topics_with_key(avro, excluded, self._registry.has):
            try:
                value_id = self._registry.register(f"{topic}-value", avro.value)
            except IncompatibleSchemaError as error:
                _logger.info("incompatible schema", topic=topic, problem=error.problem)
            else:
                return ChangeTopic(topic, self._make_topic(topic), key_id, value_id)
        return self._register_new_topic(avro)

    def _register_new_topic(self, avro: AvroSchemas) -> ChangeTopic:
        """The first version of the topic, or the next one."""
        first = next(self._topic_names(avro.table))
        topic = next(name for name in self._topic_names(avro.table) if not self._registry.has(f"{name}-key"))
        value_id = self._registry.register(f"{topic}-value", avro.value)
        key_id = self._registry.register(f"{topic}-key", avro.key)
        self._subjects.add(f"{topic}-key")
        if topic != first:
            table = avro.table.qualified_name
            _logger.warning("new change topic version", code=Code.TOPIC_VERSION.text, table=table, topic=topic)
        return ChangeTopic(topic, self._make_topic(topic), key_id, value_id)

    def _topic_names(self, table: TableMetadata) -> Iterator[str]:
        return versions(change_topic(self._prefix, table.keyspace, table.name))

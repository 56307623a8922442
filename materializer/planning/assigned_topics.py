"""Finds the change topic of each schema of a table where the registry assigns the topics (materializer.topics).

The registry decides by compatibility, primary key and personal data (decision 0038). Its answer is stored before it is
used, so a job that starts while the registry is down continues with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import structlog

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.kinds import Status
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.tables import from_json
from cdc_common.messages.topics import change_topic
from materializer.planning.change_topics import avro_schemas_of, misread_topics, new_schemas
from materializer.planning.form_changes import check_forms
from materializer.planning.plan import ChangeTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.clients.registry.schematizer import SchematizerClient
    from cdc_common.clients.registry.views import Registration
    from cdc_common.messages.avro.type_forms import TypeForms
    from materializer.planning.avro_schemas import AvroSchemas
    from materializer.planning.plan import TableSchema
    from materializer.planning.registry import Registry
    from materializer.planning.topic_cache import SchemaKey, TopicCache

_logger = structlog.get_logger(__name__)


class AssignedTopics:
    """Assign change topics as ChangeTopics does, with the names that the registry gives. `registry` looks up the
    schemas in these topics.
    """

    def __init__(
        self,
        prefix: str,
        assigner: SchematizerClient,
        registry: Registry,
        cache: TopicCache,
        make_topic: Callable[[str], int],
    ) -> None:
        self._prefix = prefix
        self._assigner = assigner
        self._registry = registry
        self._cache = cache
        self._make_topic = make_topic
        self._unregistered: set[SchemaKey] = set()

    def check_reachable(self) -> None:
        """Raise CdcError if the registry assigns no topics, or if it does not answer and no assignment is stored."""
        try:
            self._assigner.check_reachable()
        except RegistryRequestError as error:
            if error.lacks_request:
                raise CdcError(
                    Code.REGISTRY_REFUSED,
                    f"The registry assigns no topics: {error.problem}",
                    "Set materializer.topics to template, or registry.url to a cassandra-schematizer.",
                ) from error
            if error.code is not Code.REGISTRY_UNREACHABLE or self._cache.is_empty():
                raise
            _logger.warning("registry away: stored topics are used", code=error.code.text, problem=error.problem)

    def find_or_create(self, schemas: Sequence[TableSchema], forms: TypeForms) -> tuple[ChangeTopic | None, ...]:
        """The change topic of each of a table's schemas, which come from the oldest to the newest.

        The newest schema of all is registered, and those that ChangeTopics registers, as far as the registry does not
        know them.
        CdcError REGISTRY_UNREACHABLE, if nothing is stored of these schemas in these forms, REGISTRY_REFUSED, or
        FORM_CHANGED if the table's topic has other forms.
        """
        newest = from_json(schemas[-1].json)
        cached = self._cache.read(newest.qualified_name, repr(forms))
        keys = [(schema.table_id, schema.digest) for schema in schemas]
        try:
            found = self._assign(newest, avro_schemas_of(self._prefix, schemas, forms), schemas, cached)
        except CdcError as error:
            newest_keys = {schema.table_id: (schema.table_id, schema.digest) for schema in schemas}.values()
            if error.code is not Code.REGISTRY_UNREACHABLE or not all(key in cached for key in newest_keys):
                raise
            _logger.warning("registry away: stored topics are used", table=newest.qualified_name, problem=error.problem)
            return tuple(cached.get(key) for key in keys)
        self._tell_new_topic(newest, {topic.name for topic in cached.values()}, found[-1])
        known = {key: topic for key, topic in zip(keys, found, strict=True) if topic is not None}
        self._cache.write(newest.qualified_name, known, repr(forms))
        return tuple(found)

    def _tell_new_topic(self, table: TableMetadata, known: set[str], assigned: ChangeTopic | None) -> None:
        if known and assigned is not None and assigned.name not in known:
            name, code = table.qualified_name, Code.TOPIC_VERSION.text
            _logger.warning("new change topic version", code=code, table=name, topic=assigned.name)

    def _assign(
        self,
        newest: TableMetadata,
        avros: Sequence[AvroSchemas],
        schemas: Sequence[TableSchema],
        cached: Mapping[SchemaKey, ChangeTopic],
    ) -> list[ChangeTopic | None]:
        keys = [(schema.table_id, schema.digest) for schema in schemas]
        is_to_look_up = not all(key in cached or key in self._unregistered for key in keys)
        topics = self._topics_of(newest) if is_to_look_up or not cached else []
        if topics and not cached:
            check_forms(self._registry, topics[-1], avros)
        known = [cached.get(key) or self._look_up(topics, avro, key) for key, avro in zip(keys, avros, strict=True)]
        new = new_schemas(schemas, known)
        found: list[ChangeTopic | None] = []
        for place, topic in enumerate([*known[:-1], None]):  # the newest is asked for each time
            found.append(self._ask(newest, avros, found) if topic is None and place in new else topic)
        return found

    def _topics_of(self, table: TableMetadata) -> list[str]:
        """The names of the topics that the table's schemas are assigned to, the oldest first."""
        namespace = f"{self._prefix}.{table.keyspace}"
        return [topic.name for topic in self._assigner.assigned_topics(namespace, table.name, is_fresh=True)]

    def _ask(
        self, newest: TableMetadata, avros: Sequence[AvroSchemas], former: Sequence[ChangeTopic | None]
    ) -> ChangeTopic:
        """Ask for the topic of the schema that follows those with the `former` topics: none of `misread_topics`."""
        avro = avros[len(former)]
        excluded = misread_topics(avros, former)
        namespace = f"{self._prefix}.{newest.keyspace}"
        assigned = self._register(namespace, newest.name, avro)
        if assigned.topic in excluded:
            self._assigner.set_status(assigned.topic, Status.DISABLED)
            assigned = self._register(namespace, newest.name, avro)
        self._check_name(newest, assigned.topic)
        key_schema_id = assigned.key_schema_id
        assert key_schema_id is not None, "a registration with a key has the key's id"
        return ChangeTopic(assigned.topic, self._make_topic(assigned.topic), key_schema_id, assigned.schema_id)

    def _register(self, namespace: str, source: str, avro: AvroSchemas) -> Registration:
        return self._assigner.register(namespace, "avro", avro.value, source=source, key=avro.key)

    def _look_up(self, topics: Sequence[str], avro: AvroSchemas, key: SchemaKey) -> ChangeTopic | None:
        """The last of the table's topics in which an older schema was registered."""
        if key in self._unregistered:
            return None
        for topic in reversed(topics):
            key_id = self._registry.lookup(f"{topic}-key", avro.key)
            value_id = None if key_id is None else self._registry.lookup(f"{topic}-value", avro.value)
            if key_id is not None and value_id is not None:
                return ChangeTopic(topic, self._make_topic(topic), key_id, value_id)
        self._unregistered.add(key)
        return None

    def _check_name(self, table: TableMetadata, topic: str) -> None:
        """A wrong name would mix two tables, or write to a foreign topic."""
        name = re.escape(change_topic(self._prefix, table.keyspace, table.name))
        if not re.fullmatch(rf"[a-zA-Z0-9_-]*{name}(-v\d+)?", topic):
            raise CdcError(
                Code.REGISTRY_REFUSED,
                f"The registry assigns the topic {topic} to {table.qualified_name}, which is not named after it.",
                "Set materializer.topics to template, or correct the topics of this source in the registry.",
            )

"""The answers of the catalogue: frozen values, the same in the service, over REST and in SchematizerClient."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads annotations
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from cdc_common.clients.registry.kinds import (  # noqa: TC001 - as above
    About,
    Part,
    RefreshStatus,
    Status,
    TopicKind,
)


class View(BaseModel):
    model_config = ConfigDict(frozen=True)


class Namespace(View):
    """`sources`: how many it has."""

    # Its id in the catalogue.
    id: int
    # Its name.
    name: str
    # Its owner.
    owner: str | None
    # Its documentation.
    doc: str | None
    # When it was added.
    created_at: datetime
    # How many sources it has.
    sources: int


class Deprecation(View):
    """Why a source should no longer be read, and what to read instead."""

    # The reason.
    reason: str
    # The source to read instead, as NAMESPACE/SOURCE; None if there is none.
    successor: str | None
    # When it was deprecated.
    since: datetime


class Source(View):
    """`topics`: names, the oldest first. `owner`: its own, or its namespace's."""

    # Its id in the catalogue.
    id: int
    # The name of its namespace.
    namespace: str
    # Its name.
    name: str
    # Its own owner, or its namespace's.
    owner: str | None
    # Its documentation.
    doc: str | None
    # When it was added.
    created_at: datetime
    # The names of its topics, the oldest first.
    topics: list[str]
    # Its deprecation; None if it has none.
    deprecation: Deprecation | None = None


class Topic(View):
    """`pii`: the paths of personal fields that it was made for. `pii_misplaced`: it carries personal fields, as they
    are marked today, although its name does not begin with the prefix that is theirs.
    """

    # Its id in the catalogue.
    id: int
    # Its name.
    name: str
    # The name of its namespace.
    namespace: str
    # The name of its source.
    source: str
    # The kind of messages in it.
    kind: TopicKind
    # Whether it may be used.
    status: Status
    # The paths of the personal fields that it was made for.
    pii: list[str]
    # Whether it carries personal fields, as they are marked today, although its name does not begin with their prefix.
    pii_misplaced: bool
    # When it was added.
    created_at: datetime
    # When a client last used it.
    last_used_at: datetime


class TopicSchema(View):
    """A schema in a topic. `primary_key`: paths in order."""

    # The topic's name.
    topic: str
    # Whether it is the schema of keys or of values.
    part: Part
    # The schema's id.
    schema_id: int
    # Whether it may be used in this topic.
    status: Status
    # The format of the description that it was made from.
    format: str
    # The paths of the primary key's fields, in order.
    primary_key: list[str]
    # When it was added to the topic.
    created_at: datetime
    # When a client last used it.
    last_used_at: datetime


class Schema(View):
    """`text`: its canonical JSON. `topics`: where it is used."""

    # Its id.
    schema_id: int
    # Its canonical JSON.
    text: str
    # Its uses in topics.
    topics: list[TopicSchema]


class Element(View):
    """A field. `doc`, `owner`, `is_pii`: what the source's documentation says, or the schema's own doc. `field_id`: of
    that documentation, for notes and tags; None if there is none yet.
    """

    # The names of its record and its own, joined by dots.
    path: str
    # Its Avro type, as text.
    type: str
    # Its type in the source's database; None if it is not known.
    source_type: str | None
    # Whether it may be null.
    is_nullable: bool
    # Whether it is part of the primary key.
    is_key: bool
    # The documentation of the source, or the schema's own.
    doc: str | None
    # Its owner in the documentation of the source.
    owner: str | None
    # Whether its values are personal data.
    is_pii: bool
    # The id of its documentation, for notes and tags; None if there is none yet.
    field_id: int | None


class Registration(View):
    """The result of registering a schema. `is_new_topic`, `rule`, `reason`: the decision; `is_new_schema`: the topic
    did not have it. `key_schema_id`: None for messages without a key's schema.
    """

    # The namespace of the source.
    namespace: str
    # The name of the source.
    source: str
    # The topic that the schema is in.
    topic: str
    # The id of the value's schema.
    schema_id: int
    # The id of the key's schema; None for messages without one.
    key_schema_id: int | None
    # Whether the topic is new.
    is_new_topic: bool
    # Whether the topic did not have the schema.
    is_new_schema: bool
    # The name of the rule that decided.
    rule: str
    # The reason, as a sentence.
    reason: str


class Compatibility(View):
    """The decision about a schema that is not registered: `is_compatible` if it would share the newest topic."""

    # Whether it would share the newest topic.
    is_compatible: bool
    # The name of the rule that decided.
    rule: str
    # The reason, as a sentence.
    reason: str


class FieldText(View):
    """The entry of a field in a documentation file."""

    # Its documentation.
    doc: str | None = None
    # Its owner.
    owner: str | None = None
    # Whether its values are personal data.
    pii: bool = False


class SourceDocumentation(View):
    """The content of a source's documentation file. `fields`: by path."""

    # The documentation of the source.
    doc: str | None = None
    # The owner of the source.
    owner: str | None = None
    # The entries of fields, by path.
    fields: dict[str, FieldText] = {}


class Unused(View):
    """A topic, or a schema of it (with its id), that was not used for long."""

    # The topic's name.
    topic: str
    # The schema's id; None for the whole topic.
    schema_id: int | None
    # When a client last used it.
    last_used_at: datetime
    # Whether it may be used.
    status: Status


class DataSource(View):
    """A source that a consumer group reads, or all sources of a namespace."""

    # The name of the namespace.
    namespace: str
    # The name of the source; None for all sources of the namespace.
    source: str | None = None


class ConsumerGroup(View):
    # Kafka's name of the group.
    name: str
    # The name of the data target that it fills.
    data_target: str
    # The sources that it reads.
    data_sources: list[DataSource]


class DataTarget(View):
    """`groups`: names of its consumer groups."""

    # Its id in the catalogue.
    id: int
    # Its name.
    name: str
    # Its kind, such as a warehouse.
    kind: str
    # Where it is, such as a database.
    destination: str
    # Its owner.
    owner: str | None
    # Its documentation.
    doc: str | None
    # When it was added.
    created_at: datetime
    # The names of its consumer groups.
    groups: list[str]


class FollowedTopics(View):
    """The topics that a data target reads now. `cursor`: to be sent with the next question; `changed`: whether anything
    changed since the cursor that was sent.
    """

    # The cursor to send with the next question.
    cursor: int
    # Whether anything changed since the cursor that was sent.
    changed: bool
    # The topics that it reads now.
    topics: list[Topic]


class Producer(View):
    """`is_late`: it was not seen for twice as long as it said."""

    # The team of the service.
    team: str
    # The service's name.
    service: str
    # The topic that it writes.
    topic: str
    # The id of the schema that it writes with.
    schema_id: int
    # How often it writes or registers at least, in seconds.
    expected_frequency_seconds: int
    # When it registered first.
    first_seen_at: datetime
    # When it registered last.
    last_seen_at: datetime
    # Whether it was not seen for twice as long as it said.
    is_late: bool


class Consumer(View):
    """A registered reader. `is_late`: as for a Producer."""

    # The team of the service.
    team: str
    # The service's name.
    service: str
    # The topic that it reads.
    topic: str
    # Kafka's name of its group.
    consumer_group: str
    # How often it reads or registers at least, in seconds.
    expected_frequency_seconds: int
    # When it registered first.
    first_seen_at: datetime
    # When it registered last.
    last_seen_at: datetime
    # As for a Producer.
    is_late: bool


class Note(View):
    """`text`: Markdown, as it was written: not sanitised."""

    # Its id.
    id: int
    # The kind of thing that it is about.
    about: About
    # The id of that thing.
    about_id: int
    # Markdown, as it was written: not sanitised.
    text: str
    # The name of its author.
    author: str
    # When it was added.
    created_at: datetime
    # When it was last changed.
    updated_at: datetime


class Refresh(View):
    # Its id.
    id: int
    # The namespace of the source.
    namespace: str
    # The name of the source.
    source: str
    # How far it is.
    status: RefreshStatus
    # Why it was requested.
    reason: str
    # The name of the one who requested it.
    requested_by: str
    # The number of rows that were sent so far.
    rows_sent: int
    # When it was requested.
    created_at: datetime
    # When its progress last changed.
    updated_at: datetime


class Decision(View):
    """Why a schema is in its topic. `rule`: the name of the rule that decided; `reason`: a sentence."""

    # The namespace of the source.
    namespace: str
    # The name of the source.
    source: str
    # The topic that the schema is in.
    topic: str
    # The schema's id.
    schema_id: int
    # Whether the topic was new.
    is_new_topic: bool
    # The name of the rule that decided.
    rule: str
    # The reason, as a sentence.
    reason: str
    # When it was decided.
    decided_at: datetime


class CassandraTable(View):
    # Its keyspace.
    keyspace: str
    # Its name.
    name: str


class Reader(View):
    """A consumer group of a source's topics. `services`: those that named themselves; `data_target`: what the group
    fills; `lags`: offsets that it has not read, by topic; empty if it is unknown.
    """

    # Kafka's name of the group.
    group: str
    # The services that named themselves.
    services: list[str]
    # The data target that the group fills.
    data_target: str | None
    # The topics that it reads.
    topics: list[str]
    # The offsets that it has not read, by topic; empty if this is unknown.
    lags: dict[str, int]


class StageKind(StrEnum):
    """The kind of stage that rows pass. `change` follows a raw topic; `other`: topics of what is no Cassandra table."""

    TABLE = "table"
    RAW = "raw"
    CHANGE = "change"
    OTHER = "other"
    CONSUMERS = "consumers"


class Stage(View):
    """A stage that rows pass: `tables`, `topics` or `readers`, as `kind` says; the other two are empty. Topics of dead
    letters come after the topics that they are kept from.
    """

    # The kind of stage.
    kind: StageKind
    # Tables of Cassandra, for the kind `table`.
    tables: list[CassandraTable] = []
    # Topics, for the kinds `raw`, `change` and `other`.
    topics: list[Topic] = []
    # Consumer groups, for the kind `consumers`.
    readers: list[Reader] = []


class Lineage(View):
    """`stages`: in the order in which a source's rows pass them."""

    # The namespace of the source.
    namespace: str
    # The name of the source.
    source: str
    # The stages, in the order in which rows pass them.
    stages: list[Stage]


class Change(View):
    """A write to the catalogue; `id` rises with each."""

    # Its id, which rises with each change.
    id: int
    # When it was written.
    changed_at: datetime
    # The name of the one who wrote it.
    changed_by: str
    # The kind of write.
    action: str
    # The namespace that it concerns; None for what has none.
    namespace: str | None
    # The thing that was written.
    about: str
    # The new value, or other words about the write.
    detail: str


class CatalogueEntry(View):
    """The place of something in the catalogue. A field has a namespace and a source; a namespace has
    only its own name.
    """

    # The kind of thing.
    about: About
    # The name of its namespace; None for what has none.
    namespace: str | None
    # The name of its source; None for what has none.
    source: str | None
    # Its own name.
    name: str


class Found(CatalogueEntry):
    """A hit of a search. `snippet`: a line of its text around the words."""

    # A line of its text around the words.
    snippet: str


class Lease(View):
    """The right to apply the files of a deployment. `token`: what its holder sends with each write."""

    # The name of the deployment.
    deployment: str
    # The name of the holder.
    holder: str
    # A number that rises with each holder.
    token: int
    # When it ends, unless it is renewed.
    expires_at: datetime


class Managed(View):
    """A thing that was made from topic files, as they said it last."""

    # The kind of thing.
    kind: str
    # Its name.
    name: str
    # Its properties, which are compared with the thing itself.
    content: dict[str, Any]
    # What people want to know: the path of the file, the owner, the typology, a link.
    about: dict[str, Any] = {}


class ManagedSince(Managed):
    """A managed thing of a deployment, with who wrote it last."""

    # The name of the deployment.
    deployment: str
    # The name of the one who wrote it.
    changed_by: str
    # When it was written.
    changed_at: datetime


class Coverage(View):
    """The number of fields of a source's newest schema, how many of them have docs, and how many are personal."""

    # The number of fields.
    fields: int
    # How many of them have docs.
    documented: int
    # How many of them are personal.
    pii: int


class Version(View):
    """A value schema of a source, as it was registered: the docs are its own. `version`: its number, from 1."""

    # Its number, from 1.
    version: int
    # The schema in its topic.
    schema_: TopicSchema
    # The paths of the primary key's fields, in order.
    primary_key: list[str]
    # Its fields.
    elements: list[Element]

"""The answers of the catalogue: frozen values, the same in the service, over REST and in SchematizerClient."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads annotations
from enum import StrEnum

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

    id: int
    name: str
    owner: str | None
    doc: str | None
    created_at: datetime
    sources: int


class Source(View):
    """`topics`: names, the oldest first. `owner`: its own, or its namespace's."""

    id: int
    namespace: str
    name: str
    owner: str | None
    doc: str | None
    created_at: datetime
    topics: list[str]


class Topic(View):
    """`pii`: the paths of personal fields that it was made for. `pii_misplaced`: it carries personal fields, as they
    are marked today, although its name does not begin with the prefix that is theirs.
    """

    id: int
    name: str
    namespace: str
    source: str
    kind: TopicKind
    status: Status
    pii: list[str]
    pii_misplaced: bool
    created_at: datetime
    last_used_at: datetime


class TopicSchema(View):
    """A schema in a topic. `primary_key`: paths in order."""

    topic: str
    part: Part
    schema_id: int
    status: Status
    format: str
    primary_key: list[str]
    created_at: datetime
    last_used_at: datetime


class Schema(View):
    """`text`: its canonical JSON. `topics`: where it is used."""

    schema_id: int
    text: str
    topics: list[TopicSchema]


class Element(View):
    """A field. `doc`, `owner`, `is_pii`: what the source's documentation says, or the schema's own doc. `field_id`: of
    that documentation, for notes and tags; None if there is none yet.
    """

    path: str
    type: str
    source_type: str | None
    is_nullable: bool
    is_key: bool
    doc: str | None
    owner: str | None
    is_pii: bool
    field_id: int | None


class Registration(View):
    """The result of registering a schema. `is_new_topic`, `rule`, `reason`: the decision; `is_new_schema`: the topic
    did not have it. `key_schema_id`: None for messages without a key's schema.
    """

    namespace: str
    source: str
    topic: str
    schema_id: int
    key_schema_id: int | None
    is_new_topic: bool
    is_new_schema: bool
    rule: str
    reason: str


class Compatibility(View):
    """The decision about a schema that is not registered: `is_compatible` if it would share the newest topic."""

    is_compatible: bool
    rule: str
    reason: str


class FieldText(View):
    """The entry of a field in a documentation file."""

    doc: str | None = None
    owner: str | None = None
    pii: bool = False


class SourceDocumentation(View):
    """The content of a source's documentation file. `fields`: by path."""

    doc: str | None = None
    owner: str | None = None
    fields: dict[str, FieldText] = {}


class Unused(View):
    """A topic, or a schema of it (with its id), that was not used for long."""

    topic: str
    schema_id: int | None
    last_used_at: datetime
    status: Status


class DataSource(View):
    """`source`: None for all sources of the namespace."""

    namespace: str
    source: str | None = None


class ConsumerGroup(View):
    name: str
    data_target: str
    data_sources: list[DataSource]


class DataTarget(View):
    """`groups`: names of its consumer groups."""

    id: int
    name: str
    kind: str
    destination: str
    owner: str | None
    doc: str | None
    created_at: datetime
    groups: list[str]


class FollowedTopics(View):
    """The topics that a data target reads now. `cursor`: to be sent with the next question; `changed`: whether anything
    changed since the cursor that was sent.
    """

    cursor: int
    changed: bool
    topics: list[Topic]


class Producer(View):
    """`is_late`: it was not seen for twice as long as it said."""

    team: str
    service: str
    topic: str
    schema_id: int
    expected_frequency_seconds: int
    first_seen_at: datetime
    last_seen_at: datetime
    is_late: bool


class Consumer(View):
    """A registered reader. `is_late`: as for a Producer."""

    team: str
    service: str
    topic: str
    consumer_group: str
    expected_frequency_seconds: int
    first_seen_at: datetime
    last_seen_at: datetime
    is_late: bool


class Note(View):
    """`text`: Markdown, as it was written: not sanitised."""

    id: int
    about: About
    about_id: int
    text: str
    author: str
    created_at: datetime
    updated_at: datetime


class Refresh(View):
    id: int
    namespace: str
    source: str
    status: RefreshStatus
    reason: str
    requested_by: str
    rows_sent: int
    created_at: datetime
    updated_at: datetime


class Decision(View):
    """Why a schema is in its topic. `rule`: the name of the rule that decided; `reason`: a sentence."""

    namespace: str
    source: str
    topic: str
    schema_id: int
    is_new_topic: bool
    rule: str
    reason: str
    decided_at: datetime


class CassandraTable(View):
    keyspace: str
    name: str


class Reader(View):
    """A consumer group of a source's topics. `services`: those that named themselves; `data_target`: what the group
    fills; `lags`: offsets that it has not read, by topic; empty if it is unknown.
    """

    group: str
    services: list[str]
    data_target: str | None
    topics: list[str]
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

    kind: StageKind
    tables: list[CassandraTable] = []
    topics: list[Topic] = []
    readers: list[Reader] = []


class Lineage(View):
    """`stages`: in the order in which a source's rows pass them."""

    namespace: str
    source: str
    stages: list[Stage]


class Change(View):
    """A write to the catalogue; `id` rises with each."""

    id: int
    changed_at: datetime
    changed_by: str
    action: str
    namespace: str | None
    about: str
    detail: str


class Place(View):
    """The place of something in the catalogue. A field has a namespace and a source; a namespace has
    only its own name.
    """

    about: About
    namespace: str | None
    source: str | None
    name: str


class Found(Place):
    """A hit of a search. `snippet`: a line of its text around the words."""

    snippet: str


class Coverage(View):
    """The number of fields of a source's newest schema, how many of them have docs, and how many are personal."""

    fields: int
    documented: int
    pii: int


class Version(View):
    """A value schema of a source, as it was registered: the docs are its own. `version`: its number, from 1."""

    version: int
    schema_: TopicSchema
    primary_key: list[str]
    elements: list[Element]

"""The bodies of the REST interface's requests, as the service reads them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from cdc_common.clients.registry.kinds import (  # noqa: TC001 - pydantic reads annotations
    About,
    RefreshStatus,
    Status,
)
from schematizer.numbers import Count, GivenId, Seconds  # noqa: TC001 - as above


class Body(BaseModel):
    """An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Described(Body):
    """The owner and the documentation of a namespace or a source."""

    # The owner; None leaves it out.
    owner: str | None = None
    # The documentation; None leaves it out.
    doc: str | None = None


class DeprecationBody(Body):
    """Why a source should no longer be read."""

    # The reason, for its readers.
    reason: str
    # The source to read instead, as NAMESPACE/SOURCE; None for none.
    successor: str | None = None


class NewName(Described):
    # The name of what is added.
    name: str


class StatusBody(Body):
    # The new status.
    status: Status


class DataTargetBody(Described):
    # Its kind, such as a warehouse.
    kind: str
    # Where it is, such as a database.
    destination: str


class DataSourceBody(Body):
    """`source`: None for all sources of the namespace."""

    # The name of the namespace.
    namespace: str
    # The name of the source; None for all sources of the namespace.
    source: str | None = None


class ConsumerGroupBody(Body):
    # The sources that it reads.
    data_sources: list[DataSourceBody]


class ProducerBody(Body):
    # The team of the service.
    team: str
    # The service's name.
    service: str
    # The topic that it writes.
    topic: str
    # The id of the schema that it writes with.
    schema_id: GivenId
    # How often it writes or registers at least, in seconds.
    expected_frequency_seconds: Seconds


class ConsumerBody(Body):
    # The team of the service.
    team: str
    # The service's name.
    service: str
    # The topic that it reads.
    topic: str
    # Kafka's name of its group.
    consumer_group: str
    # How often it reads or registers at least, in seconds.
    expected_frequency_seconds: Seconds


class NoteBody(Body):
    """`text`: Markdown."""

    # The kind of thing that it is about.
    about: About
    # The id of that thing.
    about_id: GivenId
    # Markdown.
    text: str


class NoteText(Body):
    # Markdown.
    text: str


class RefreshBody(Body):
    # Why all rows are to be sent again.
    reason: str


class RefreshProgress(Body):
    # How far it is.
    status: RefreshStatus
    # The number of rows that were sent so far.
    rows_sent: Count


class FieldBody(Body):
    """None: nothing is said, what is known stays."""

    # Its documentation.
    doc: str | None = None
    # Its owner.
    owner: str | None = None
    # Whether its values are personal data.
    pii: bool | None = None


class FieldTextBody(Body):
    """All that is said of a field."""

    # Its documentation.
    doc: str | None = None
    # Its owner.
    owner: str | None = None
    # Whether its values are personal data.
    pii: bool = False


class DocumentationBody(Described):
    """All that is said of a source. `fields`: by path."""

    # The entries of fields, by path.
    fields: dict[str, FieldTextBody] = {}


class DescriptionBody(Body):
    """A description to register. `source`: by default the description's own name. `key`: the Avro schema of the keys,
    for the format avro. `fields`: by path.
    """

    # The format of the description, such as `avro`.
    format: str
    # The description.
    text: str
    # The name of the source; None for the description's own name.
    source: str | None = None
    # The Avro schema of the keys, for the format avro.
    key: str | None = None
    # The owner of the source.
    owner: str | None = None
    # The documentation of the source.
    doc: str | None = None
    # The documentation of fields, by path.
    fields: dict[str, FieldBody] = {}


class LeaseBody(Body):
    """`token`: of the lease that is to be renewed; None for a new one."""

    # The name of the holder, for people.
    holder: str
    # The time after which it ends, in seconds.
    seconds: Seconds
    # The token of the lease that is to be renewed; None for a new one.
    token: GivenId | None = None


class ThingBody(Body):
    """A thing by its kind and name."""

    # The kind of thing.
    kind: str
    # Its name.
    name: str


class ManagedBody(ThingBody):
    # Its properties.
    content: dict[str, Any]
    # What people want to know of it.
    about: dict[str, Any] = {}


class ManagedChangesBody(Body):
    # The token of the lease.
    token: GivenId
    # What was made or changed.
    put: list[ManagedBody] = []
    # What is no longer managed.
    remove: list[ThingBody] = []

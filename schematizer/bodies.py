"""The bodies of the REST interface's requests, as the service reads them."""

from __future__ import annotations

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

    owner: str | None = None
    doc: str | None = None


class NewName(Described):
    name: str


class StatusBody(Body):
    status: Status


class DataTargetBody(Described):
    kind: str
    destination: str


class DataSourceBody(Body):
    """`source`: None for all sources of the namespace."""

    namespace: str
    source: str | None = None


class ConsumerGroupBody(Body):
    data_sources: list[DataSourceBody]


class ProducerBody(Body):
    team: str
    service: str
    topic: str
    schema_id: GivenId
    expected_frequency_seconds: Seconds


class ConsumerBody(Body):
    team: str
    service: str
    topic: str
    consumer_group: str
    expected_frequency_seconds: Seconds


class NoteBody(Body):
    """`text`: Markdown."""

    about: About
    about_id: GivenId
    text: str


class NoteText(Body):
    text: str


class RefreshBody(Body):
    reason: str


class RefreshProgress(Body):
    status: RefreshStatus
    rows_sent: Count


class FieldBody(Body):
    """None: nothing is said, what is known stays."""

    doc: str | None = None
    owner: str | None = None
    pii: bool | None = None


class FieldTextBody(Body):
    """All that is said of a field."""

    doc: str | None = None
    owner: str | None = None
    pii: bool = False


class DocumentationBody(Described):
    """All that is said of a source. `fields`: by path."""

    fields: dict[str, FieldTextBody] = {}


class DescriptionBody(Body):
    """A description to register. `source`: by default the description's own name. `key`: the Avro schema of the keys,
    for the format avro. `fields`: by path.
    """

    format: str
    text: str
    source: str | None = None
    key: str | None = None
    owner: str | None = None
    doc: str | None = None
    fields: dict[str, FieldBody] = {}

"""The model of `topic.toml`: one topic in one environment."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - as below
from datetime import date  # noqa: TC003 - pydantic reads annotations
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cdc_common.clients.registry.kinds import Status
from cdc_common.clients.registry.views import FieldText, SourceDocumentation
from schematizer.topic_files.files.base import Count, FileModel, Text
from schematizer.topic_files.files.catalogue_file import (  # noqa: TC001 - as above
    Cleanup,
    Encoding,
    PersonalData,
    Pii,
    Scope,
)


class DocumentedField(FileModel):
    """The documentation of a field, as in a documentation file."""

    doc: str | None = Field(default=None, description="What the field holds.")
    owner: str | None = Field(default=None, description="Its owner, if it is not the topic's.")
    pii: bool = Field(default=False, description="Whether its values are personal data.")


def documentation_of(doc: str | None, owner: str | None, fields: Mapping[str, DocumentedField]) -> SourceDocumentation:
    """Return the documentation of a source, as the registry keeps it."""
    texts = {path: FieldText(doc=field.doc, owner=field.owner, pii=field.pii) for path, field in fields.items()}
    return SourceDocumentation(doc=doc, owner=owner, fields=texts)


class TopicProducer(FileModel):
    """A service that writes the topic."""

    service: Text = Field(description="Its name in `services` of catalogue.toml.")
    seconds: Count = Field(default=86_400, description="Time within which it writes or registers at least once (s).")


class TopicConsumer(FileModel):
    """A service that reads the topic."""

    service: Text = Field(description="Its name in `services` of catalogue.toml.")
    group: Text | None = Field(default=None, description="Its consumer group, if it is not the service's name.")
    seconds: Count = Field(default=86_400, description="Time within which it reads or registers at least once (s).")


class TopicArchive(FileModel):
    """How the topic is archived."""

    layout: Literal["iceberg", "hive"] = Field(default="iceberg", description="Form of the tables.")
    bucket: Literal["hour", "day"] = Field(default="hour", description="Range of event times of one file.")
    event_time: list[Text] = Field(default=[], description="Fields that may hold the time of an event, the best first.")
    table: Annotated[str, Field(pattern=r"^[a-z0-9_]+\.[a-z0-9_]+$")] | None = Field(
        default=None, description="Name of the table, such as shop.orders."
    )


class TopicWarehouse(FileModel):
    """A warehouse that the topic is loaded into."""

    warehouse: Text = Field(description="Its name in `warehouses` of catalogue.toml.")
    form: Literal["current", "changes", "history"] = Field(default="current", description="Form of the table.")
    deletes: Literal["remove", "mark"] = Field(
        default="remove", description="What a deletion does in the form `current`: remove the row, or mark it."
    )
    personal_data: PersonalData | None = Field(
        default=None, description="What is done with personal fields, if it is not what the warehouse says."
    )

    @model_validator(mode="after")
    def _check_deletes(self) -> Self:
        if self.deletes == "mark" and self.form != "current":
            raise ValueError(f"deletes = 'mark' has no effect: the form is {self.form}")
        return self


class Waiver(FileModel):
    """An exception from a rule, for a time."""

    rule: Text = Field(description="The rule's code, such as T302.")
    reason: Text = Field(description="Why this topic is an exception.")
    until: date = Field(description="Last day on which it counts.")


class TopicFile(FileModel):
    """`topic.toml` (or .json, .yaml), in the folder of a topic's environment."""

    typology: Text = Field(description="Kind of topic: a name of `typologies` in catalogue.toml.")
    doc: str | None = Field(default=None, description="What the topic holds.")
    owner: Text = Field(description="The team that owns it: a name of `owners` in catalogue.toml.")
    name: Text | None = Field(default=None, description="Kafka's name of the topic, if the folders do not give it.")
    scope: Scope = Field(default="company", description="Who may ask for the right to read it.")
    encoding: Encoding = Field(default="avro", description="What its messages are.")
    throughput: Text | None = Field(default=None, description="Class of throughput, which gives clients' quotas.")
    pii: Pii = Field(default="none", description="Level of personal data in its messages.")
    status: Status = Field(default=Status.READ_WRITE, description="Its status in the registry.")
    primary_key: list[Text] = Field(default=[], description="Fields that identify a message's subject, in order.")
    partitions: Count | None = Field(default=None, description="As the typology's, if it differs.")
    replication_factor: Count | None = Field(default=None, description="As the typology's, if it differs.")
    min_in_sync_replicas: Count | None = Field(default=None, description="As the typology's, if it differs.")
    cleanup: Cleanup | None = Field(default=None, description="As the typology's, if it differs.")
    retention_hours: Annotated[int, Field(ge=-1)] | None = Field(
        default=None, description="As the typology's, if it differs (hours); -1 for never."
    )
    config: dict[Text, str | int | bool] = Field(default={}, description="Other settings of Kafka's topic.")
    producers: list[TopicProducer] = Field(default=[], description="Services that write it.")
    consumers: list[TopicConsumer] = Field(default=[], description="Services that read it.")
    archive: TopicArchive | None = Field(default=None, description="How it is archived; without it, it is not.")
    warehouses: list[TopicWarehouse] = Field(default=[], description="Warehouses that it is loaded into.")
    fields: dict[Text, DocumentedField] = Field(default={}, description="Documentation of fields, by path.")
    waivers: list[Waiver] = Field(default=[], description="Exceptions from rules.")

    def documentation(self) -> SourceDocumentation:
        """Return the documentation of the topic's source, as the registry keeps it."""
        return documentation_of(self.doc, self.owner, self.fields)

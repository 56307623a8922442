"""The model of `catalogue.toml`: what all topics of a repository share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from schematizer.topic_files.files.base import Count, FileModel, Text, Word

LEVEL = r"^[a-z][a-z0-9_]*$"
Cleanup = Literal["delete", "compact", "compact,delete"]
Encoding = Literal["avro", "json", "bytes"]
Pii = Literal["none", "personal", "sensitive"]
Scope = Literal["private", "company", "public"]
PersonalData = Literal["refuse", "leave_out", "load"]


class Environment(FileModel):
    """An environment, which is a folder below each topic's, and a cluster."""

    name: str | None = Field(
        default=None, description="Name of Kafka's topics in this environment, if it is not the repository's `name`."
    )
    after: str | None = Field(
        default=None, description="Environment that a topic and its schemas must be in before they come to this one."
    )
    settings: str | None = Field(
        default=None,
        description="Settings file (cdc.toml) of the environment's Kafka and registry, relative to this file. "
        "Without one, those of the command count.",
    )
    replication_factor: Count | None = Field(
        default=None, description="Number of copies of each partition, if it is not the typology's."
    )


class Typology(FileModel):
    """A kind of topic, as a template: a topic's own values count before these."""

    doc: Text = Field(description="What topics of this kind are for.")
    partitions: Count = Field(description="Number of partitions.")
    replication_factor: Count = Field(default=3, description="Number of copies of each partition.")
    min_in_sync_replicas: Count | None = Field(default=None, description="Copies that must have a message.")
    cleanup: Cleanup = Field(default="delete", description="Whether old messages are deleted, compacted, or both.")
    retention_hours: Annotated[int, Field(ge=-1)] | None = Field(
        default=None, description="Time after which messages are deleted (hours); -1 for never."
    )
    config: dict[Text, str | int | bool] = Field(default={}, description="Other settings of Kafka's topics.")
    is_keyed: bool = Field(
        default=False, description="Whether the order of one key's messages counts: partitions are then not added."
    )
    encodings: list[Encoding] = Field(default=["avro"], description="Encodings that topics of this kind may have.")
    mandatory_fields: dict[Text, Text] = Field(
        default={},
        description="Fields that every schema has, and their types in words: `string`, `long (timestamp-micros)`.",
    )
    pii: list[Pii] = Field(
        default=["none", "personal", "sensitive"], description="Levels of personal data that topics may have."
    )


class Throughput(FileModel):
    """A class of throughput: quotas of each client and topic, of one broker."""

    producer_bytes_per_second: Count = Field(description="Rate at which a producer may write (bytes/s).")
    consumer_bytes_per_second: Count = Field(description="Rate at which a consumer may read (bytes/s).")


class Owner(FileModel):
    """A team that owns topics and services."""

    contact: Text = Field(description="Where to reach the team: a channel or an address.")


class Service(FileModel):
    """A program that produces or consumes."""

    owner: Text = Field(description="The team that owns it: a name of `owners`.")
    principal: str | dict[Text, Text] = Field(
        description="Its principal in Kafka, or one for each environment: `User:billing` for SASL, `User:CN=billing` "
        "for TLS certificates."
    )
    transactional_ids: list[Text] = Field(
        default=[], description="Prefixes of the transactional ids that it uses as a producer."
    )


class Program(FileModel):
    """One of the pipeline's own programs, which reads topics that say so."""

    principal: str | dict[Text, Text] = Field(description="As a service's.")
    group: Text = Field(description="Its consumer group.")


class Warehouse(FileModel):
    """A warehouse that topics may name."""

    principal: str | dict[Text, Text] = Field(description="Principal of the program that loads it.")
    group: Text = Field(description="Its consumer group.")
    destination: Text = Field(description="Where it is, as people call it.")
    personal_data: PersonalData = Field(
        default="refuse",
        description="What is done with personal fields, unless a topic says it: `refuse` stops their table, "
        "`leave_out` makes no columns of them, and `load` loads them.",
    )


class Names(FileModel):
    """The convention of names."""

    folder: Text = Field(default=r"^[a-z][a-z0-9-]*$", description="Regular expression of folders.")
    field: Text = Field(default=r"^[a-z][a-z0-9_]*$", description="Regular expression of the names of fields.")


class CatalogueFile(FileModel):
    """`catalogue.toml`, at the root of a repository."""

    levels: list[Annotated[str, StringConstraints(pattern=LEVEL)]] = Field(
        default=["company", "domain", "topic"],
        min_length=1,
        description="What the folders above an environment's are called, from the root.",
    )
    name: Text = Field(
        default="{domain}.{topic}",
        description="Name of Kafka's topic, made of levels and `{environment}` in braces.",
    )
    pii_prefix: str = Field(
        default="pii-", description="What names of topics with personal data begin with. Rights are granted by it."
    )
    link: str | None = Field(
        default=None,
        pattern=r"^https?://\S*\{path\}\S*$",
        description="URL of a file of the repository, with `{path}` in it: Watson links topics to their files.",
    )
    time_type: Text = Field(
        default="long (timestamp-micros)", description="Type of all fields that hold a time of an event."
    )
    public_pii: list[Pii] = Field(default=["none"], description="Levels of personal data that public topics may have.")
    names: Names = Field(default=Names(), description="The convention of names.")
    environments: dict[Text, Environment] = Field(min_length=1, description="By the name of their folders.")
    typologies: dict[Text, Typology] = Field(min_length=1, description="Kinds of topics, by name.")
    throughput: dict[Text, Throughput] = Field(default={}, description="Classes of throughput, by name.")
    owners: dict[Text, Owner] = Field(default={}, description="Teams, by name.")
    services: dict[Word, Service] = Field(default={}, description="Producers and consumers, by name.")
    archive: Program | None = Field(default=None, description="The program that archives topics.")
    warehouses: dict[Word, Warehouse] = Field(default={}, description="Warehouses, by name.")


def principal_of(principal: str | dict[str, str], environment: str) -> str | None:
    """Return the principal in an environment; None if it has none there."""
    return principal if isinstance(principal, str) else principal.get(environment)

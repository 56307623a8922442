"""The things that files ask for, as they are compared: each has a kind, a name, and properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from schematizer.topic_files.files.reading import SourceFolder, TopicFolder

Value = str | int | float | bool | None
Content = Mapping[str, Value]
"""Properties by name."""


class Kind(StrEnum):
    """The kind of thing, in the order in which things are made."""

    TOPIC = "topic"
    SCHEMA = "schema"
    ENTRY = "entry"
    SOURCE = "source"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    QUOTA = "quota"
    RIGHT = "right"
    # What cassandra-archive and cassandra-warehouse do with a topic: they read it in the registry's notes.
    ARCHIVE = "archive"
    WAREHOUSE = "warehouse"


class Thing(NamedTuple):
    """A thing by its name."""

    # Its kind.
    kind: Kind
    # Its name, among those of its kind.
    name: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


@dataclass(frozen=True)
class Wanted:
    """A thing that the files ask for."""

    # Its properties.
    content: Content
    # The topic that asks for it; None if several may.
    topic: TopicFolder | None = None
    # The file of a source that only has documentation.
    source: SourceFolder | None = None
    # The text of a schema.
    text: str = ""
    # Whether the order of one key's messages counts, of a topic.
    is_keyed: bool = False
    # What people want to know of it.
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A thing that is there."""

    # Its properties.
    content: Content
    # The values that count, the brokers' defaults included.
    effective: Content = field(default_factory=dict)
    # The topic that it concerns; empty for none.
    topic: str = ""


class Kept(NamedTuple):
    """A thing that was made from the files, as they said it then."""

    # Its properties.
    content: Content
    # What people want to know of it.
    about: Mapping[str, str]


Things = dict[Thing, Wanted]
NOTED = frozenset({Kind.ARCHIVE, Kind.WAREHOUSE})
"""Kinds of things that are nowhere but in the registry's notes."""


def schema_thing(subject: str, canonical: str) -> Thing:
    """Name a schema of a subject: by its content, as versions have numbers that a registry gives."""
    return Thing(Kind.SCHEMA, f"{subject} {sha256(canonical.encode()).hexdigest()[:16]}")


def subject_of_thing(thing: Thing) -> str:
    """Return the subject of a schema's name."""
    return thing.name.rpartition(" ")[0]


def warehouse_thing(topic: str, warehouse: str) -> Thing:
    """Name the table of a topic in a warehouse."""
    return Thing(Kind.WAREHOUSE, f"{topic} {warehouse}")


def client_thing(kind: Kind, topic: str, *parts: str) -> Thing:
    """Name a producer or a consumer of a topic: by its service, and its group."""
    return Thing(kind, " ".join((topic, *parts)))

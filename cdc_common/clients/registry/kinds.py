"""Words that the catalogue of cassandra-schematizer uses in requests and answers, and stores in its tables."""

from enum import StrEnum


class TopicKind(StrEnum):
    """The content of a topic. Topics of the materializer are recognised by their names."""

    CHANGE = "change"
    RAW = "raw"
    DEAD = "dead"
    OTHER = "other"


class Part(StrEnum):
    """The part of a message that a schema describes."""

    KEY = "key"
    VALUE = "value"


class Status(StrEnum):
    """read-write: may be registered and read. read-only: readers may use it, no producer may register it again.
    disabled: it no longer counts for the assignment of topics, and no client should use it.
    """

    READ_WRITE = "read-write"
    READ_ONLY = "read-only"
    DISABLED = "disabled"


class About(StrEnum):
    """The subject of a note or a tag; `about_id` is the id in that table (a schema's: the registry's id)."""

    NAMESPACE = "namespace"
    SOURCE = "source"
    FIELD = "field"
    TOPIC = "topic"
    SCHEMA = "schema"
    DATA_TARGET = "data-target"


class RefreshStatus(StrEnum):
    """The state of sending a source's rows again."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"


ASSIGNED_KINDS = (TopicKind.CHANGE, TopicKind.OTHER)
"""Topics that schemas are assigned to. Raw and dead-letter topics belong to a source too."""

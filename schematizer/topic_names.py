"""Reads the name of a topic or a subject: the namespace, the source and the kind."""

from __future__ import annotations

import re
from typing import NamedTuple

from cdc_common.clients.registry.kinds import Part, TopicKind
from cdc_common.messages.topics import versioned

DEFAULT_NAMESPACE = "default"
"""The namespace of topics whose names have no dot."""
_VERSION = re.compile(r"-v([0-9]+)$")
_KINDS = {"raw": TopicKind.RAW, "dead": TopicKind.DEAD}


class TopicName(NamedTuple):
    """The parts of a topic's name."""

    # The namespace.
    namespace: str
    # The source.
    source: str
    # The kind of messages.
    kind: TopicKind
    # The version; 1 unless the name says another.
    version: int = 1


def parse_topic(name: str, pii_prefix: str = "") -> TopicName:
    """Parse a topic's name. `<prefix>.<keyspace>.<table>[-vN]` is a change topic of the namespace
    `<prefix>.<keyspace>`, and `<prefix>.raw.<keyspace>.<table>` its raw topic. Of any other name the last part is the
    source, and what comes before it the namespace. `pii_prefix` is no part of a namespace.
    """
    plain = name.removeprefix(pii_prefix) if pii_prefix else name
    parts = plain.split(".")
    if len(parts) == 4 and parts[1] in _KINDS:
        return TopicName(f"{parts[0]}.{parts[2]}", parts[3], _KINDS[parts[1]])
    found = _VERSION.search(parts[-1])
    version = int(found[1]) if found and int(found[1]) > 1 else 1
    last = parts[-1].removesuffix(found[0]) if found and version > 1 else parts[-1]
    namespace = ".".join(parts[:-1]) or DEFAULT_NAMESPACE
    if not last or not all(parts):
        return TopicName(DEFAULT_NAMESPACE, name, TopicKind.OTHER)
    return TopicName(namespace, last, TopicKind.CHANGE if len(parts) == 3 else TopicKind.OTHER, version)


def topic_name(namespace: str, source: str, version: int, prefix: str = "") -> str:
    """The name that parse_topic reads; `prefix` is the one of personal data, or empty."""
    return versioned(f"{prefix}{namespace}.{source}", version)


def parse_subject(subject: str) -> tuple[str, Part] | None:
    """The topic and the part of a subject `<topic>-value` or `<topic>-key`; None of any other."""
    for part in Part:
        topic = subject.removesuffix(f"-{part.value}")
        if topic and topic != subject:
            return topic, part
    return None


def subject_of(topic: str, part: Part) -> str:
    return f"{topic}-{part.value}"

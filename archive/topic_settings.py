"""Settings of single topics: the entries of `archive.topic_settings`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages.topics import matches

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
_CHOICES = {
    "layout": ("iceberg", "hive"),
    "bucket": ("hour", "day"),
    "tombstones": ("ignore", "keep", "erasures"),
    "on_error": ("stop", "bytes", "dead_letter", "skip"),
    "format": ("avro", "json", "bytes"),
    "lost": ("stop", "accept"),
}
_KEYS = (*_CHOICES, "event_time", "subject", "table")
_OF_FILES = ("layout", "bucket", "table", "format")


class EntryError(ValueError):
    """An entry that is not understood. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Entry(NamedTuple):
    """An entry: `PATTERN KEY=VALUE …`."""

    # A name or a regular expression that matches whole names of topics.
    pattern: str
    # The fields of the definition that it sets.
    values: dict[str, Any]

    def matches(self, topic: str) -> bool:
        return matches(topic, [self.pattern])


def parse_entry(text: str) -> Entry:
    """EntryError."""
    pattern, *words = text.split() or [""]
    try:
        re.compile(pattern)
    except re.error as error:
        raise EntryError(f"{pattern!r} is no regular expression: {error}") from error
    if not words:
        raise EntryError(f"{text!r} names a topic and no setting, such as layout=hive")
    values: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in _KEYS or not value:
            raise EntryError(f"{word!r} is none of {', '.join(f'{known}=…' for known in _KEYS)}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise EntryError(f"{word!r}: {key} is {' or '.join(_CHOICES[key])}")
        if key == "table" and not _TABLE.fullmatch(value):
            raise EntryError(f"{word!r}: a table has a namespace, and small letters, digits and _, such as shop.orders")
        values[key] = tuple(value.split("|")) if key == "event_time" else value
    return Entry(pattern, values)


def file_fields(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a definition that a topic file sets."""
    fields = {key: said[key] for key in _OF_FILES if said.get(key)}
    if said.get("event_time"):
        fields["event_time"] = tuple(str(said["event_time"]).split("|"))
    return fields

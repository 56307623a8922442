"""The answers of a registry."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal["key", "value"]
"""A part of a message."""


class Registered(NamedTuple):
    """The topic and schema ids for messages of a pair of derived schemas. key_id: None for keys that are null."""

    topic: str
    key_id: int | None
    value_id: int


class Newest(NamedTuple):
    """The newest schemas of a topic, as JSON; `key` is None if it has none. value_id: of the value's."""

    value_id: int
    key: Any
    value: Any

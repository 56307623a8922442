"""The answers of a registry."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal["key", "value"]
"""A part of a message."""


class Registered(NamedTuple):
    """The topic and schema ids for messages of a pair of derived schemas."""

    # The target topic.
    topic: str
    # The registry's id of the key schema; None for keys that are null.
    key_id: int | None
    # The registry's id of the value schema.
    value_id: int


class Newest(NamedTuple):
    """The newest schemas of a topic."""

    # The registry's id of the value schema.
    value_id: int
    # The key schema, as JSON; None if the topic has none.
    key: Any
    # The value schema, as JSON.
    value: Any

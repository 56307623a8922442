"""The messages of a processor, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_runtime.records import ChangeRun


def messages_of(sent: Iterable[Message | ChangeRun]) -> list[Message]:
    found: list[Message] = []
    for item in sent:
        found += [item] if isinstance(item, Message) else item.messages()
    return found

"""Why a message of the internal topic cannot be joined."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joinery.joining.records import Group


class JoinError(Exception):
    """A message that stops its partition. `reason` holds no value of a row."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LostHistoryError(JoinError):
    """A change of a row that the state does not have: an earlier message was deleted before it was read."""


class DefinitionError(JoinError):
    """A message that was routed by another definition of the join, or a state of one."""

    def __init__(self) -> None:
        super().__init__("it is of another definition of the join: another selection, filter or type of a column")


class FanOutError(JoinError):
    """A change of an input would change more joined rows than the limit.

    group: of the change. counts: of the rows of each input that it has. fan_out: how many joined rows would change.
    """

    def __init__(self, group: Group, counts: tuple[int, ...], fan_out: int, limit: int) -> None:
        super().__init__(f"it changes {fan_out:,} joined rows, and the limit is {limit:,}")
        self.group = group
        self.counts = counts


def masked(group: Group) -> str:
    """The first digits of the SHA-256 of a join key: errors show it in place of the key."""
    return sha256(group.key).hexdigest()[:12]

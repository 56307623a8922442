"""The exceptions of this package."""

from __future__ import annotations


class MessageError(Exception):
    """A message that this build cannot read or write. `reason` says why, without row values.

    Reading: another wire format, a format version that this build does not read, or damaged bytes.
    Writing: a value that its column's type cannot have. No part of the message may be used.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NextVersionError(MessageError):
    """The message has the format version after this build's."""


def check_version(version: object, readable: range, what: str) -> None:
    """Raise MessageError unless this build reads this format version of `what`: its own or an earlier one."""
    if not isinstance(version, int) or version not in readable:
        known = " and ".join(str(number) for number in readable)
        kind = NextVersionError if version == readable.stop else MessageError
        raise kind(f"{what} has format version {version}; this build reads {known}")

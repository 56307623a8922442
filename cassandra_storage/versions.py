"""What differs between Cassandra's versions, as data: nothing else in this package may ask which version it reads.

Commit log versions are CommitLogDescriptor's, messaging versions MessagingService's. A version that is not in a table
is refused by name; making one readable means adding its line here (and, for its tests, vectors of a real server).
"""

from __future__ import annotations

from dataclasses import dataclass

from cassandra_storage.errors import FormatError

VERSION_40 = 12  # MessagingService.VERSION_40
VERSION_50 = 13  # MessagingService.VERSION_50


@dataclass(frozen=True, slots=True)
class MessagingFormat:
    """How mutations of one messaging version are serialized.

    `has_unsigned_deletion_time`: local deletion times are unsigned 32-bit seconds, up to 2106 (CASSANDRA-14227), else
    signed and a negative one is invalid.
    """

    version: int
    has_unsigned_deletion_time: bool


@dataclass(frozen=True, slots=True)
class CommitLogFormat:
    """How segments of one commit log version are laid out, and the messaging version of their mutations."""

    version: int
    messaging_version: int


_MESSAGING = {
    VERSION_40: MessagingFormat(VERSION_40, has_unsigned_deletion_time=False),
    VERSION_50: MessagingFormat(VERSION_50, has_unsigned_deletion_time=True),
}

_COMMIT_LOG = {
    7: CommitLogFormat(7, messaging_version=VERSION_40),
}


def messaging_format(version: int) -> MessagingFormat:
    """The format of a messaging version; FormatError names one that cannot be read."""
    known = _MESSAGING.get(version)
    if known is None:
        raise FormatError(f"messaging version {version} is not supported")
    return known


def commit_log_format(version: int) -> CommitLogFormat:
    """The format of a commit log version; FormatError names one that cannot be read."""
    known = _COMMIT_LOG.get(version)
    if known is None:
        raise FormatError(f"commit log version {version} is not supported")
    return known

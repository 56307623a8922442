"""The differences between Cassandra's versions, as data: no other module checks the version.

Commit log versions are CommitLogDescriptor's, messaging versions MessagingService's. A version that is not in a table
is refused by name; making one readable means adding its line here (and, for its tests, vectors of a real server).

What was compared, in the sources of 3.11.19, 4.0.19, 4.1.10 and 5.0.8, and is the same in all of them: the descriptor,
sync markers, sections and entries; Mutation, PartitionUpdate, UnfilteredRowIteratorSerializer, SerializationHeader for
messaging, Columns and their subsets, Clustering, bounds and boundaries, rows, cells, counter contexts, and which types
have values of fixed length. (DeletionTime.Serializer of 5.0, with its byte of flags, is for SSTables only.)
"""

from __future__ import annotations

from dataclasses import dataclass

from cassandra_storage.formats.errors import UnsupportedError

VERSION_3014 = 11  # MessagingService.VERSION_3014
VERSION_40 = 12  # MessagingService.VERSION_40
VERSION_50 = 13  # MessagingService.VERSION_50


@dataclass(frozen=True, slots=True)
class MessagingFormat:
    """The serialization of mutations in one messaging version."""

    # MessagingService's number.
    version: int
    # Local deletion times are unsigned seconds (4 bytes), up to 2106 (CASSANDRA-14227); otherwise signed, and a
    # negative one is invalid.
    has_unsigned_deletion_time: bool
    # The value that is written for Cell.NO_DELETION_TIME. 5.0 writes its own also into version 12
    # (storage_compatibility_mode: CASSANDRA_4), so readers must take both.
    no_deletion_time: int


@dataclass(frozen=True, slots=True)
class CommitLogFormat:
    """The facts of one commit log version: how its segments reach cdc_raw, and the messaging version of their
    mutations.
    """

    # CommitLogDescriptor's number.
    version: int
    # MessagingService's number for the mutations.
    messaging_version: int
    # A segment is linked into cdc_raw when it is made, and a `_cdc.idx` says how much of it is durable
    # (CASSANDRA-12148); otherwise it is moved there, once it is full and flushed.
    has_cdc_index: bool
    # The versions of Cassandra that write it, for people.
    written_by: str


_INT_MAX = 2**31 - 1  # Cell.NO_DELETION_TIME before 5.0
_UNSIGNED_INT_MAX = 2**32 - 1  # Cell.NO_DELETION_TIME_UNSIGNED_INTEGER
NO_DELETION_TIMES = frozenset((_INT_MAX, _UNSIGNED_INT_MAX))  # as any version writes it

_MESSAGING = {
    form.version: form
    for form in (
        MessagingFormat(VERSION_3014, has_unsigned_deletion_time=False, no_deletion_time=_INT_MAX),
        MessagingFormat(VERSION_40, has_unsigned_deletion_time=False, no_deletion_time=_INT_MAX),
        MessagingFormat(VERSION_50, has_unsigned_deletion_time=True, no_deletion_time=_UNSIGNED_INT_MAX),
    )
}

_COMMIT_LOG = {
    form.version: form
    for form in (
        # To releases after 3.11, messaging version VERSION_30 (10): the same bytes.
        CommitLogFormat(6, VERSION_3014, has_cdc_index=False, written_by="3.0 to 3.11"),
        CommitLogFormat(7, VERSION_40, has_cdc_index=True, written_by="4.0, 4.1, and 5.0 by default"),
        CommitLogFormat(
            8,
            VERSION_50,
            has_cdc_index=True,
            written_by="5.0 with storage_compatibility_mode NONE or UPGRADING",
        ),
    )
}


def messaging_format(version: int) -> MessagingFormat:
    """The format of a messaging version; UnsupportedError names one that cannot be read."""
    known = _MESSAGING.get(version)
    if known is None:
        raise UnsupportedError(f"messaging version {version} is not supported")
    return known


def commit_log_format(version: int) -> CommitLogFormat:
    """The format of a commit log version; UnsupportedError names one that cannot be read."""
    known = _COMMIT_LOG.get(version)
    if known is None:
        raise UnsupportedError(f"commit log version {version} is not supported")
    return known

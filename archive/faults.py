"""The errors of archived topics: a factory for each situation, with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.faults import Faults
from stream_runtime.words import Words

if TYPE_CHECKING:
    from stream_runtime.records import SourcePartition


def message_refused(partition: SourcePartition, offset: int, reason: str) -> CdcError:
    """A message that is not of its schema, where the settings keep no bytes."""
    return CdcError(
        Code.ARCHIVE_MESSAGE,
        f"The message at offset {offset} of {partition} cannot become a row: {reason}.",
        "Set on_error for this topic in archive.topic_settings, and restart the job: `bytes` keeps such messages as "
        "they are, `dead_letter` sends them to a topic, and `skip` leaves them out. All are counted. If the topic "
        "should not have the message, find out who sent it.",
    )


def subject_missing(table: str, subject: str) -> CdcError:
    return CdcError(
        Code.ARCHIVE_MESSAGE,
        f"The messages of the table {table} are JSON, but the registry has no schema under {subject}.",
        "Register an Avro schema that describes the JSON there, or name another subject in archive.topic_settings.",
    )


def spill_refused(file: str, error: OSError) -> CdcError:
    return CdcError(
        Code.ARCHIVE_LOCATION,
        f"The worker's disk refuses {file}: {error}.",
        "Make archive.spool_directory writable, with free space for the rows of the open cuts.",
    )


def intent_differs(where: str, problem: str) -> CdcError:
    """The error for messages that differ from an intent when they are read again."""
    return CdcError(
        Code.ARCHIVE_INTENT,
        f"The cut that was begun for {where} cannot be finished: {problem}.",
        "Messages were deleted, or files were changed, while a cut was open. Compare the intent (_archive/intents in "
        "the location) with the topic; `cassandra-archive verify` shows what is committed. If retention deleted "
        "messages, `lost=accept` for the topic in archive.topic_settings finishes the cut without them.",
    )


def event_unreadable(where: SourcePartition, offset: int) -> CdcError:
    return CdcError(
        Code.ARCHIVE_LEDGER,
        f"The message at offset {offset} of {where} is no file event that this version reads.",
        "Only the archive may write to its topic of file events. If a newer version wrote the message, use that one.",
    )


def ledger_broken(problems: list[str]) -> CdcError:
    shown = "; ".join(problems[:5])
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return CdcError(
        Code.ARCHIVE_LEDGER,
        f"The file events and the files do not fit ({len(problems)}): {shown}{more}.",
        "Find out who has changed files of the location, or messages of the topic of file events. Restore them from a "
        "backup. If neither was changed, this is a defect.",
    )


def table_refused(table: str, problem: str) -> CdcError:
    return CdcError(
        Code.ARCHIVE_TABLE,
        f"The table {table} of the catalog is not as the archive left it: {problem}.",
        "Undo the change. Or drop the table from the catalog, without its files, and restart the job: the registrar "
        "makes it again from all file events.",
    )


def table_failed(table: str, kind: str, trace: str) -> CdcError:
    """An exception of the catalog or its client. trace: without row values."""
    return CdcError(
        Code.ARCHIVE_TABLE,
        f"The files of the table {table} cannot be registered: {kind} ({trace.strip().splitlines()[-1]}).",
        "See that the catalog answers and that its user may create and change tables. The registrar tries again.",
    )


def catalog_refused(kind: str, trace: str) -> CdcError:
    """A catalog that does not answer, or refuses. kind: `iceberg` or `hive`. trace: without values."""
    return CdcError(
        Code.ARCHIVE_SETTING,
        f"The catalog of the {kind} tables cannot be used: {trace.strip().splitlines()[-1]}.",
        "See that it answers at archive.catalog_uri, and that it takes the credentials: of PyIceberg's catalogs those "
        "in PYICEBERG_CATALOG__NAME__…, of Glue those of AWS. Files are kept while it is away, and registered later.",
    )


def share_size_changed(share: str, known: int, now: int) -> CdcError:
    return CdcError(
        Code.ARCHIVE_SETTING,
        f"archive.partitions_per_share is {now}, but {share} was archived with {known}.",
        f"Set archive.partitions_per_share to {known} again: open cuts belong to shares of that size.",
    )


def location_taken(location: str, owner: str, group: str) -> CdcError:
    return CdcError(
        Code.ARCHIVE_SETTING,
        f"The archive's location {location} belongs to the group {owner}; this is {group}.",
        "Give this group a location of its own: two groups would store each message twice.",
    )


class ArchiveFaults(Faults):
    """The errors of source partitions."""

    words = Words("archive", "partition", "topic", "archive", "archived")
    setting = Code.ARCHIVE_SETTING

    def advise_collision(self) -> str:
        return "Archive them with groups of their own, each with another location and another namespace."

    def messages_skipped(self, partition: SourcePartition, expected: int, found: int) -> CdcError:
        return CdcError(
            self.skipped,
            f"Messages of {partition} are missing: the next one should have offset {expected}, but it has {found}.",
            self._advise_loss(partition.topic),
        )

    def messages_deleted(self, partition: SourcePartition, offset: int) -> CdcError:
        return CdcError(
            self.skipped,
            f"The messages of {partition} from offset {offset} on were deleted before they were archived.",
            self._advise_loss(partition.topic),
        )

    def topic_recreated(self, topic: str) -> CdcError:
        return CdcError(
            self.changed,
            f"The topic {topic} was deleted and recreated: its offsets begin again, and committed ones mean nothing.",
            f"To archive the new topic into the same table: `cassandra-archive retry {topic}`. For a table of its own, "
            f"set `{topic} table=…` in archive.topic_settings first, and restart the job.",
        )

    def _advise_loss(self, topic: str) -> str:
        return (
            f"Raise retention.ms of the topic. To go on without them, set `{topic} lost=accept` in "
            "archive.topic_settings and restart the job: the file event names what is lost, and "
            "cdc_archive_lost_messages_total counts it. Take the setting out again later."
        )

    def location_refused(self, location: str, problem: str) -> CdcError:
        """stream_runtime.stores.faults.StoreFaults."""
        return CdcError(
            Code.ARCHIVE_LOCATION,
            f"The archive's location {location} cannot be used: {problem}.",
            "Give archive.location a folder that all workers reach and may write, on a file system with hard links and "
            "free space, or s3://bucket/folder with credentials that may list, read, write and delete below it.",
        )

    def store_away(self, location: str, problem: str) -> CdcError:
        """As location_refused."""
        return CdcError(
            Code.ARCHIVE_STORE_AWAY,
            f"The archive's location {location} does not answer: {problem}.",
            "See that the store is up and that workers and driver reach it. It is tried again by itself.",
        )

    def advise_restart(self, topic: str) -> str:
        return (
            f"Archive {topic} again with another archive.group_id and another archive.location; what is stored so far "
            "stays correct up to the committed offsets."
        )


ARCHIVE_FAULTS = ArchiveFaults()

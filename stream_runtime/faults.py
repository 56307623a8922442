"""The errors of source partitions, positions and states: a method for each situation, in a job's words, with its fix.

A job makes a subclass that names its own commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.words import NEUTRAL, Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.records import SourcePartition, TopicShape


class Faults:
    """The errors of a job. What they say of the fix is true of any job; a subclass says it more exactly."""

    words: Words = NEUTRAL
    skipped: Code = Code.RAW_SKIPPED
    """The code for messages that were deleted before they were read."""
    changed: Code = Code.STATE_MISMATCH
    """The code for a topic that is not the one that a position is of."""
    resized: Code = Code.RAW_PARTITIONS_CHANGED
    """The code for a topic that has another number of partitions."""
    setting: Code = Code.SPARK_SETTING
    """The code for a setting of the job."""

    def setting_missing(self, name: str, why: str) -> CdcError:
        where = self.words.setting(name)
        return CdcError(self.setting, f"{where} is empty: {why}.", f"Set {where} in cdc.toml.")

    def core_missing(self) -> CdcError:
        return CdcError(
            self.setting,
            f"The {self.words.job} needs the native core, which is not compiled or is switched off (CDC_NATIVE).",
            "Install a wheel for this machine, or a C compiler, and unset CDC_NATIVE.",
        )

    def tables_collide(self, table: str, topics: Sequence[str]) -> CdcError:
        return CdcError(
            self.setting,
            f"The topics {', '.join(topics)} would have the same table {table}.",
            self.advise_collision(),
        )

    def advise_collision(self) -> str:
        """The fix where two topics would have the same table."""
        return f"Exclude one of them ({self.words.setting('excluded_topics')})."

    def advise_restart(self, topic: str) -> str:
        """The fix where a topic's positions or states cannot be continued."""
        return f"Give the {self.words.job} another group_id: it reads {topic} from the beginning then."

    def topic_changed(self, topic: str, known: TopicShape, now: TopicShape) -> CdcError:
        """The topic was recreated, or its number of partitions has changed."""
        if known.topic_id != now.topic_id:
            return self.topic_recreated(topic)
        return self.partition_count_changed(topic, known.partitions, now.partitions)

    def topic_recreated(self, topic: str) -> CdcError:
        return CdcError(
            self.changed,
            f"The {self.words.topic} {topic} was deleted and recreated: its committed offsets no longer mean anything.",
            self.advise_restart(topic),
        )

    def partition_count_changed(self, topic: str, before: int, now: int) -> CdcError:
        return CdcError(
            self.resized,
            f"The {self.words.topic} {topic} has {now} partitions; it had {before}: keys have moved.",
            self.advise_restart(topic),
        )

    def messages_skipped(self, partition: SourcePartition, expected: int, found: int) -> CdcError:
        """The next message should have the offset `expected`, but has `found`."""
        return CdcError(
            self.skipped,
            f"Messages of {partition} are missing: the next one should have offset {expected}, but it has {found}.",
            f"They were deleted before they were read (see retention.ms of the {self.words.topic}). "
            f"{self.advise_restart(partition.topic)}",
        )

    def messages_deleted(self, partition: SourcePartition, offset: int) -> CdcError:
        """Messages from `offset` on were deleted, as a consumer has found out."""
        return CdcError(
            self.skipped,
            f"The messages of {partition} from offset {offset} on were deleted before they were read, or the topic was "
            "recreated.",
            f"Raise the topic's retention. {self.advise_restart(partition.topic)}",
        )

    def message_misplaced(self, partition: SourcePartition, offset: int, expected: int) -> CdcError:
        """A message whose key belongs to another partition of the topic."""
        return CdcError(
            self.resized,
            f"The message at offset {offset} of {partition} belongs to partition {expected}: its producer does not "
            "know yet that the topic has more partitions.",
            f"Restart the producers. {self.advise_restart(partition.topic)}",
        )

    def offset_beyond_end(self, partition: SourcePartition, offset: int, end: int) -> CdcError:
        return CdcError(
            Code.STATE_MISMATCH,
            f"The group's offset of {partition} is {offset}, but the topic ends at {end}: the topic was "
            "recreated, or has lost messages.",
            self.advise_restart(partition.topic),
        )

    def offset_foreign(self, partition: SourcePartition, offset: int, problem: str) -> CdcError:
        """The metadata of a committed offset is not that of the job."""
        return CdcError(
            Code.STATE_MISMATCH,
            f"The group's committed offset {offset} of {partition} {problem}: another program or an operator set it.",
            "An offset alone cannot move the state. Use another group_id for other consumers. If you have a copy of "
            f"the earlier offset with its metadata, commit both. Otherwise: {self.advise_restart(partition.topic)}",
        )

    def offset_lost(self, partition: SourcePartition, group: str) -> CdcError:
        return CdcError(
            Code.STATE_MISMATCH,
            f"The group {group} has lost its offset of {partition}: it was deleted or has expired.",
            "If you have a copy of the offset with its metadata, commit both. Otherwise: "
            f"{self.advise_restart(partition.topic)} See {self.words.setting('offset_refresh_hours')} and the brokers' "
            "offsets.retention.minutes.",
        )

    def state_without_offset(self, partition: SourcePartition) -> CdcError:
        return CdcError(
            Code.STATE_MISMATCH,
            f"The group has no committed offset of {partition}, but the checkpoint location holds its "
            "state: the group was deleted, has expired, or is not the group of this state.",
            "Restore the earlier group_id and checkpoint_location. If you have a copy of the lost offset with its "
            f"metadata, commit both. Otherwise: {self.advise_restart(partition.topic)}",
        )

    def state_ahead(self, partition: SourcePartition, offset: int, version: str, end: int) -> CdcError:
        """The state of the committed version ends after the group's offset."""
        return CdcError(
            Code.STATE_MISMATCH,
            f"{partition}: the group's offset is {offset}, but its state {version} ends at {end}.",
            "Restore the group's earlier offset and metadata.",
        )

    def state_damaged(self, partition: SourcePartition, path: str, problem: str) -> CdcError:
        return CdcError(
            Code.STATE_DAMAGED,
            f"{path} cannot be used: {problem}.",
            "Restore the file from a backup or an earlier version of the object. If it belongs to a snapshot, delete "
            "the snapshot's manifest: the previous snapshot and its changelogs are used then, if they are still kept"
            f"{self.advise_verify()}. If a changelog is lost, the {self.words.partition}'s state is lost. "
            f"{self.advise_restart(partition.topic)}",
        )

    def advise_verify(self) -> str:
        """How an operator finds out which files are kept, as an insertion."""
        return ""

    def command_unfinished(self, partition: SourcePartition, in_progress: tuple[int, int]) -> CdcError:
        """A command that works on the topic has marked the position, and has not finished."""
        return CdcError(
            Code.STATE_MISMATCH,
            f"A command that works on {partition.topic} has begun, but has not finished (it has marked the offset with "
            f"{in_progress[0]}, {in_progress[1]}).",
            "Let it finish. If it was stopped, run it again.",
        )

    def fenced(self, doing: str) -> CdcError:
        """Another process has taken over while a command was working."""
        return CdcError(
            Code.STATE_MISMATCH,
            f"Another process has taken over a {self.words.partition}: cannot {doing}.",
            f"Stop the {self.words.job}, and any other command of this group; then run it again.",
        )


NEUTRAL_FAULTS = Faults()

"""Errors about raw topics, positions and states: a factory for each situation, with its fix."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from materializer.command_marks import REBUILDING
from stream_runtime.faults import Faults
from stream_runtime.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from materializer.records import RawPartition


class RawFaults(Faults):
    """The errors of raw partitions."""

    words = Words("materializer", "raw partition", "raw topic", "fold", "folded")

    def advise_restart(self, topic: str) -> str:
        return f"Rebuild the table: `cassandra-materializer rebuild {_table(topic)}` prints the steps."

    def advise_verify(self) -> str:
        return " (check with `cassandra-materializer state verify`)"

    def partition_count_changed(self, topic: str, before: int, now: int) -> CdcError:
        problem = f"The raw topic {topic} has {now} partitions, but its state was built with {before}: keys have moved."
        if now < before:
            return CdcError(
                Code.RAW_PARTITIONS_CHANGED,
                problem,
                f"Kafka never removes partitions: find out who recreated the topic. {self.advise_restart(topic)}",
            )
        return CdcError(
            Code.RAW_PARTITIONS_CHANGED,
            problem,
            f"Stop the materializer. {_advise_reshard(topic)} Then start it again.",
        )

    def messages_skipped(self, partition: RawPartition, expected: int, found: int) -> CdcError:
        return CdcError(
            Code.RAW_SKIPPED,
            f"Raw messages of {partition} are missing: the next one should have offset {expected}, but it has {found}.",
            "They were deleted before they were read (see retention.ms of the raw topic); their changes are lost. "
            f"{self.advise_restart(partition.topic)}",
        )

    def message_misplaced(self, partition: RawPartition, offset: int, expected: int) -> CdcError:
        return CdcError(
            Code.RAW_PARTITIONS_CHANGED,
            f"The raw message at offset {offset} of {partition} belongs to partition {expected}: its publisher "
            "does not know yet that the topic has more partitions.",
            f"Restart the publishers. {_advise_reshard(partition.topic)} Then start the materializer again.",
        )

    def command_unfinished(self, partition: RawPartition, in_progress: tuple[int, int]) -> CdcError:
        topic = partition.topic
        if in_progress == REBUILDING:
            return CdcError(
                Code.STATE_MISMATCH,
                f"`cassandra-materializer rebuild` of the table of {topic} has begun, but has not finished.",
                f"Let it finish. If it was stopped, run `cassandra-materializer rebuild {_table(topic)} --yes` again.",
            )
        return CdcError(
            Code.RAW_PARTITIONS_CHANGED,
            f"`cassandra-materializer state reshard` of {topic} has begun, but has not finished.",
            f"Let it finish. If it was stopped: {_advise_reshard(topic)}",
        )


RAW_FAULTS = RawFaults()


def no_raw_topic(name: str, topics: Iterable[str]) -> CdcError:
    """CdcError(CONFIG_INVALID) for a table that an operator has named. `topics`: all that exist."""
    start, _, table = name.partition(".raw.")
    tables = [topic.removeprefix(f"{start}.raw.") for topic in topics if topic.startswith(f"{start}.raw.")]
    similar = difflib.get_close_matches(table, tables, n=1, cutoff=0.7)
    fix = f"Did you mean {similar[0]}?" if similar else f"Correct the table's name, or kafka.topic_prefix ({start})."
    return CdcError(Code.CONFIG_INVALID, f"There is no raw topic {name}.", fix)


def _advise_reshard(topic: str) -> str:
    return f"Run `cassandra-materializer state reshard {_table(topic)}`: it moves each row to its new raw partition."


def _table(topic: str) -> str:
    return ".".join(topic.rsplit(".", 2)[-2:])


def changes_of_another_job(group: str, topic: str, changes: str) -> CdcError:
    """CdcError(STATE_MISMATCH) for a raw topic without any position whose change topic has messages."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"The group {group} has no committed offset of {topic}, but {changes} has messages: a job with another group "
        "publishes there, or the group was deleted or has expired, or the raw topic was recreated.",
        "Run one job for each kafka.topic_prefix, always with the same materializer.group_id, and give each Cassandra "
        f"cluster a prefix of its own. If there is no other job: {RAW_FAULTS.advise_restart(topic)}",
    )

"""Errors about raw topics, positions and states: a factory for each situation, with its fix."""

from __future__ import annotations

import difflib
import os
import traceback
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.errors import MessageError
from materializer.records import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from materializer.records import RawPartition

_WITHOUT_VALUES = (CdcError, FormatError, MessageError, UnreadableError)  # their texts hold no row values


def no_raw_topic(name: str, topics: Iterable[str]) -> CdcError:
    """CdcError(CONFIG_INVALID) for a table that an operator has named. `topics`: all that exist."""
    start, _, table = name.partition(".raw.")
    tables = [each.removeprefix(f"{start}.raw.") for each in topics if each.startswith(f"{start}.raw.")]
    similar = difflib.get_close_matches(table, tables, n=1, cutoff=0.7)
    fix = f"Did you mean {similar[0]}?" if similar else f"Correct the table's name, or kafka.topic_prefix ({start})."
    return CdcError(Code.CONFIG_INVALID, f"There is no raw topic {name}.", fix)


def partition_count_changed(topic: str, before: int, now: int) -> CdcError:
    """CdcError(RAW_PARTITIONS_CHANGED)."""
    problem = f"The raw topic {topic} has {now} partitions, but its state was built with {before}: keys have moved."
    if now < before:
        return CdcError(
            Code.RAW_PARTITIONS_CHANGED,
            problem,
            f"Kafka never removes partitions: find out who recreated the topic. {advise_rebuild(topic)}",
        )
    return CdcError(
        Code.RAW_PARTITIONS_CHANGED, problem, f"Stop the materializer. {_advise_reshard(topic)} Then start it again."
    )


def reshard_unfinished(raw_partition: RawPartition) -> CdcError:
    """CdcError(RAW_PARTITIONS_CHANGED) for a position that an unfinished `state reshard` has marked."""
    return CdcError(
        Code.RAW_PARTITIONS_CHANGED,
        f"`cassandra-materializer state reshard` of {raw_partition.topic} has begun, but has not finished.",
        f"Let it finish. If it was stopped: {_advise_reshard(raw_partition.topic)}",
    )


def rebuild_unfinished(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH) for a raw topic that an unfinished `rebuild` has marked."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"`cassandra-materializer rebuild` of the table of {topic} has begun, but has not finished.",
        f"Let it finish. If it was stopped, run `cassandra-materializer rebuild {_table(topic)} --yes` again.",
    )


def raw_message_misplaced(raw_partition: RawPartition, offset: int, expected: int) -> CdcError:
    """CdcError(RAW_PARTITIONS_CHANGED) for a raw message that was sent to the wrong raw partition after a reshard."""
    return CdcError(
        Code.RAW_PARTITIONS_CHANGED,
        f"The raw message at offset {offset} of {raw_partition} belongs to partition {expected}: its publisher "
        "does not know yet that the topic has more partitions.",
        f"Restart the publishers. {_advise_reshard(raw_partition.topic)} Then start the materializer again.",
    )


def _advise_reshard(topic: str) -> str:
    return f"Run `cassandra-materializer state reshard {_table(topic)}`: it moves each row to its new raw partition."


def advise_rebuild(topic: str) -> str:
    """The fix where the state of a raw topic cannot be continued."""
    return f"Rebuild the table: `cassandra-materializer rebuild {_table(topic)}` prints the steps."


def _table(topic: str) -> str:
    return ".".join(topic.rsplit(".", 2)[-2:])


def topic_recreated(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH)."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"The raw topic {topic} was deleted and recreated: its committed offsets no longer mean anything.",
        advise_rebuild(topic),
    )


def changes_of_another_job(group: str, topic: str, changes: str) -> CdcError:
    """CdcError(STATE_MISMATCH) for a raw topic without any position whose change topic has messages."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"The group {group} has no committed offset of {topic}, but {changes} has messages: a job with another group "
        "publishes there, or the group was deleted or has expired, or the raw topic was recreated.",
        "Run one job for each kafka.topic_prefix, always with the same materializer.group_id, and give each Cassandra "
        f"cluster a prefix of its own. If there is no other job: {advise_rebuild(topic)}",
    )


def raw_messages_skipped(raw_partition: RawPartition, expected: int, found: int) -> CdcError:
    """CdcError(RAW_SKIPPED)."""
    return CdcError(
        Code.RAW_SKIPPED,
        f"Raw messages of {raw_partition} are missing: the next one should have offset {expected}, but it has {found}.",
        "They were deleted before they were read (see retention.ms of the raw topic); their changes are lost. "
        + advise_rebuild(raw_partition.topic),
    )


def check_format(what: str, found: int, own: int) -> None:
    """CdcError(STATE_FORMAT) unless `found` is this build's format version or the one before it."""
    oldest = max(1, own - 1)
    if not oldest <= found <= own:
        versions = f"version {own}" if oldest == own else f"versions {oldest} and {own}"
        raise CdcError(
            Code.STATE_FORMAT,
            f"{what} has format version {found}; this build reads {versions}.",
            "Run the version of the materializer that wrote it, or a later one that still reads it.",
        )


def unexpected(where: str, error: Exception) -> CdcError:
    """CdcError(UNEXPECTED) for an exception that no code describes. `where`: the raw topic or raw partition."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    return CdcError(
        Code.UNEXPECTED,
        f"An unexpected exception has stopped {where}: {_name_of(error)}{place}.",
        "This is a defect: report it with the trace in the driver's log. A later version may continue from here.",
    )


def trace_of(error: BaseException) -> str:
    """The frames and types of an exception and of those that caused it. A text that may hold row values is left out."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return "\n".join("".join([*traceback.format_tb(each.__traceback__), _name_of(each)]) for each in reversed(chain))


def _name_of(error: BaseException) -> str:
    name = type(error).__qualname__
    if isinstance(error, _WITHOUT_VALUES):
        return f"{name}: {error}"
    return f"{name}: {error.strerror}" if isinstance(error, OSError) and error.strerror else name

"""Errors about raw topics, positions and states: one CdcError for each situation, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from materializer.records import RawPartition


def partitions_changed(topic: str, before: int, now: int) -> CdcError:
    """CdcError(RAW_PARTITIONS_CHANGED)."""
    problem = f"The raw topic {topic} has {now} partitions, but its state was made with {before}: keys have moved."
    if now < before:
        return CdcError(
            Code.RAW_PARTITIONS_CHANGED,
            problem,
            f"Kafka takes no partitions away: see who made the topic anew. {start_over(topic)}",
        )
    return CdcError(Code.RAW_PARTITIONS_CHANGED, problem, f"{_run_reshard(topic)} Then start the materializer again.")


def being_resharded(where: RawPartition) -> CdcError:
    """CdcError(RAW_PARTITIONS_CHANGED) for a position that `state reshard` is at work on, or was."""
    return CdcError(
        Code.RAW_PARTITIONS_CHANGED,
        f"`cassandra-materializer state reshard` has begun to deal out the state of {where.topic}, and is not done.",
        f"Let it finish. If it was stopped: {_run_reshard(where.topic)}",
    )


def being_rebuilt(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH) for a raw topic that `rebuild` is at work on, or was."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"`cassandra-materializer rebuild` has begun to make the table of {topic} start over, and is not done.",
        f"Let it finish. If it was stopped, run `cassandra-materializer rebuild {_table(topic)} --yes` again.",
    )


def misplaced(where: RawPartition, offset: int, belongs: int) -> CdcError:
    """CdcError(RAW_PARTITIONS_CHANGED) for a raw message that came to the wrong partition after a reshard."""
    return CdcError(
        Code.RAW_PARTITIONS_CHANGED,
        f"The raw message at offset {offset} of {where} belongs to partition {belongs}: whoever sent it has not seen "
        "that the topic has more partitions now.",
        f"Restart the publishers, which then do. {_run_reshard(where.topic)} Then start the materializer again.",
    )


def _run_reshard(topic: str) -> str:
    return f"Run `cassandra-materializer state reshard {_table(topic)}`: it puts each row where its key belongs now."


def start_over(topic: str) -> str:
    """What to do where the state of a raw topic can no longer be gone on from."""
    return f"Start the table over: `cassandra-materializer rebuild {_table(topic)}` says how (docs/operations.md)."


def _table(topic: str) -> str:
    return ".".join(topic.rsplit(".", 2)[-2:])


def made_anew(topic: str) -> CdcError:
    """CdcError(STATE_MISMATCH)."""
    return CdcError(
        Code.STATE_MISMATCH,
        f"The raw topic {topic} was deleted and made anew: what its offsets counted is gone.",
        start_over(topic),
    )


def skipped(partition: RawPartition, expected: int, found: int) -> CdcError:
    """CdcError(RAW_SKIPPED)."""
    return CdcError(
        Code.RAW_SKIPPED,
        f"Raw messages of {partition} are missing: the next one should have offset {expected}, but it has {found}.",
        "They were deleted before they were read (see retention.ms of the raw topic); the changes in between are lost. "
        + start_over(partition.topic),
    )


def newer_format(what: str, found: int, own: int) -> CdcError:
    """CdcError(STATE_FORMAT) for data of a format version that this build does not read."""
    return CdcError(
        Code.STATE_FORMAT,
        f"{what} has format version {found}; this build reads up to {own}.",
        "Run the version of the materializer that wrote it, or a later one.",
    )

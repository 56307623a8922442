"""The errors of joins: a factory for each situation, with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.faults import Faults
from stream_runtime.words import Words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from joinery.definition import CatalogueSource, Join
    from joinery.planning.errors import PlanError
    from stream_runtime.records import SourcePartition


def does_not_fit(join: Join, error: PlanError) -> CdcError:
    """Return CdcError(JOIN_PLAN) for a join that does not fit the schemas of its inputs."""
    return CdcError(
        Code.JOIN_PLAN,
        f'join "{join.name}" does not fit the schemas of its inputs: {error.reason}.',
        "Correct it in the joins file, or correct the schema.",
    )


def case_failed(case: Path, reason: str) -> CdcError:
    """Return CdcError(JOIN_CASE) for a case that cannot be run, or that has other joined rows than it expects."""
    return CdcError(
        Code.JOIN_CASE, f"{case}: {reason}.", "Correct the joins file or the case (docs/guides/joins.md shows both)."
    )


def several_topics(given: CatalogueSource, topics: Sequence[str]) -> CdcError:
    """Return CdcError(JOIN_INPUT) for an input that has more than one topic."""
    return CdcError(
        Code.JOIN_INPUT,
        f"{given} has several topics: {', '.join(topics)}. Joins do not follow a source to another topic yet.",
        "Disable the topics that are not written any more (cassandra-schematizer), or join another source.",
    )


def no_such_join(file: Path, name: str, known: Sequence[str]) -> CdcError:
    """Return CdcError(CONFIG_INVALID) for a join that a command names and the file does not have."""
    return CdcError(
        Code.CONFIG_INVALID, f'{file} has no join "{name}".', f"Name one of its joins: {', '.join(sorted(known))}."
    )


def has_not_run(join: Join) -> CdcError:
    """Return CdcError(JOIN_AUDIT) for a join whose inputs or target have no topic yet."""
    return CdcError(
        Code.JOIN_AUDIT,
        f'join "{join.name}" has not run yet: an input or the target has no topic.',
        "Run it (cassandra-joinery run), then audit it.",
    )


def another_key(join: Join) -> CdcError:
    """Return CdcError(JOIN_REBUILD) for a join whose target does not exist, or cannot have the rows."""
    return CdcError(
        Code.JOIN_REBUILD,
        f'join "{join.name}" cannot be rebuilt: {join.target} does not exist, or its rows have another key or a schema '
        "that its topic does not take.",
        "Give the join another name and another target.",
    )


def job_runs(join: Join) -> CdcError:
    """Return CdcError(JOIN_REBUILD) for a join whose inputs were routed during its rebuild."""
    return CdcError(
        Code.JOIN_REBUILD,
        f'join "{join.name}" cannot be rebuilt: the job runs, and has routed messages during the rebuild.',
        "Stop the job, then run the rebuild again. The partitions of the join are stopped until then.",
    )


def rows_differ(count: int) -> CdcError:
    """Return CdcError(JOIN_AUDIT) for joined rows that are not those of the inputs."""
    return CdcError(
        Code.JOIN_AUDIT,
        f"{count:,} joined rows are not as the inputs make them.",
        "Look at the messages at the offsets above. To correct the target, stop the job and run cassandra-joinery "
        "rebuild (docs/guides/joins.md).",
    )


def message_refused(join: str, partition: SourcePartition, offset: int, reason: str) -> CdcError:
    """Return CdcError(JOIN_MESSAGE) for a message of an input or of the internal topic."""
    return CdcError(
        Code.JOIN_MESSAGE,
        f'join "{join}" cannot take the message at offset {offset} of {partition}: {reason}.',
        "Correct what wrote it; a consumer of the topic shows it (docs/guides/joins.md).",
    )


def fan_out_limited(
    join: str, at: tuple[SourcePartition, int], reason: str, key: str, counts: Mapping[str, int]
) -> CdcError:
    """Return CdcError(JOIN_LIMIT) for a change of too many joined rows.

    at: its partition and offset. key: the join key, masked. counts: of the rows that each input has with that key.
    """
    partition, offset = at
    rows = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
    return CdcError(
        Code.JOIN_LIMIT,
        f'join "{join}" cannot take the message at offset {offset} of {partition}: {reason}. The rows with its join '
        f"key (SHA-256 {key}…): {rows}.",
        "Raise most_rows in the joins file and restart the job, or leave rows of that key out with a filter. The "
        "message at that offset of the internal topic has the key.",
    )


def definition_changed(join: str, partition: SourcePartition, offset: int) -> CdcError:
    """Return CdcError(JOIN_CHANGED) for a state, or a message, of another definition of the join."""
    return CdcError(
        Code.JOIN_CHANGED,
        f'join "{join}" cannot take the message at offset {offset} of {partition}: the state or the message is of '
        "another definition of the join (another selection, filter or type of a column).",
        "Stop the job and run cassandra-joinery rebuild; or put the definition back, if nothing was routed since.",
    )


def history_lost(join: str, partition: SourcePartition, offset: int, reason: str) -> CdcError:
    """Return CdcError(JOIN_HISTORY) for a change of a row that the join does not know."""
    return CdcError(
        Code.JOIN_HISTORY,
        f'join "{join}" cannot take the message at offset {offset} of {partition}: {reason}.',
        "Stop the job and run cassandra-joinery rebuild, which reads the inputs from the beginning. Let "
        "min.compaction.lag.ms and the retention of the inputs' topics be longer than the job may be away.",
    )


def written_already(group: str, partition: SourcePartition, target: str) -> CdcError:
    """Return CdcError(JOIN_REPEATED) for a target with messages that the group has not sent."""
    return CdcError(
        Code.JOIN_REPEATED,
        f"The group {group} has joined no message of {partition} yet, but {target}-{partition.partition} has messages: "
        "another join writes there, or the group was deleted or has expired.",
        "Give each join a target of its own. After a new group_id or name, use a new target too, or delete the old "
        "topic.",
    )


def target_partitions(topic: str, found: int, wanted: int) -> CdcError:
    """Return CdcError(TOPIC_SETTINGS) for a target with another number of partitions than the internal topic."""
    return CdcError(
        Code.TOPIC_SETTINGS,
        f"The target topic {topic} has {found} partitions, and the internal topic of its join has {wanted}.",
        "Delete the target topic, which the job creates, or choose another target.",
    )


class JoinFaults(Faults):
    """The errors of partitions of inputs and of internal topics."""

    words = Words("joinery", "partition", "source topic", "join", "joined")

    def advise_restart(self, topic: str) -> str:
        return f"Give the join another name and another target: it reads {topic} from the beginning then."


JOIN_FAULTS = JoinFaults()

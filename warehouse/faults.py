"""The errors of tables of a warehouse: a factory for each situation, with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.faults import Faults
from stream_runtime.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.records import SourcePartition
    from warehouse.records import TableName

_AGAIN = (
    "To load the table again from the topic's beginning, run `cassandra-warehouse reload TOPIC`, and then "
    "`cassandra-warehouse retry TOPIC`."
)


def message_refused(partition: SourcePartition, offset: int, reason: str) -> CdcError:
    """A message that cannot become a row."""
    return CdcError(
        Code.WAREHOUSE_MESSAGE,
        f"The message at offset {offset} of {partition} cannot become a row: {reason}.",
        "Find out who sent it. The table stays at its last load. Exclude the topic (warehouse.excluded_topics) if its "
        "messages are not Avro with keys.",
    )


def value_refused(partition: SourcePartition, offset: int, field: str, reason: str) -> CdcError:
    """A value that the type of its column cannot hold. No message has the value."""
    return CdcError(
        Code.WAREHOUSE_VALUE,
        f"The column of {field} cannot hold the value of the message at offset {offset} of {partition}: {reason}.",
        'Correct the row in its source, or set warehouse.on_value_refused to "null": such values become null, and are '
        "counted.",
    )


def schema_refused(topic: str, schema_id: int, reason: str) -> CdcError:
    """A schema whose messages cannot be rows of the topic's table."""
    return CdcError(
        Code.WAREHOUSE_SCHEMA,
        f"The schema {schema_id} of {topic} cannot be loaded into its table: {reason}.",
        f"Choose another form of the column where the topic is made (docs/reference/data-types.md). {_AGAIN}",
    )


def personal_refused(topic: str, schema_id: int, fields: Sequence[str]) -> CdcError:
    """A schema with personal fields, for a warehouse that may not have them."""
    return CdcError(
        Code.WAREHOUSE_PERSONAL,
        f"The schema {schema_id} of {topic} has personal fields, and the warehouse may not have them: "
        f"{', '.join(fields)}.",
        'Set warehouse.personal_data to "load" if the warehouse may have them, or to "leave_out"; or exclude the topic '
        "(warehouse.excluded_topics).",
    )


def personal_loaded(topic: str, columns: Sequence[str]) -> CdcError:
    """Columns that were loaded before their fields became personal."""
    return CdcError(
        Code.WAREHOUSE_PERSONAL,
        f"The table of {topic} has columns whose fields are personal by now: {', '.join(columns)}.",
        f"They are left out of a new table. {_AGAIN}",
    )


def table_paused(table: TableName, since: str) -> CdcError:
    """A table that somebody has paused."""
    return CdcError(
        Code.WAREHOUSE_PAUSED,
        f"The table {table} has been paused since {since}.",
        "To continue, run `cassandra-warehouse resume TOPIC`.",
    )


def target_unknown(scheme: str, known: Sequence[str]) -> CdcError:
    """A warehouse that no package has."""
    return CdcError(
        Code.WAREHOUSE_SETTING,
        f"No installed package loads into {scheme}:// (known are {', '.join(known)}).",
        "Correct warehouse.target, or install the package that has it.",
    )


def offsets_differ(table: TableName, topic: str, partition: int, known: int, found: int) -> CdcError:
    """A load that does not begin where the table ends."""
    return CdcError(
        Code.WAREHOUSE_STATE,
        f"The table {table} has partition {partition} of {topic} up to offset {known}, and a load begins at {found}.",
        f"Find out who changed the table `state`. {_AGAIN}",
    )


def state_foreign(table: TableName, problem: str) -> CdcError:
    """A state that is not that of the topic."""
    return CdcError(Code.WAREHOUSE_STATE, f"The state of the table {table} {problem}.", _AGAIN)


def table_refused(table: TableName, problem: str) -> CdcError:
    """A statement that the warehouse refuses. problem: without row values."""
    return CdcError(
        Code.WAREHOUSE_TABLE,
        f"The warehouse refuses a statement for the table {table}: {problem}.",
        "Undo what was changed in the table, or give the role its rights. The job tries again by itself.",
    )


def warehouse_away(target: str, problem: str) -> CdcError:
    """A warehouse that does not answer. problem: without row values."""
    return CdcError(
        Code.WAREHOUSE_AWAY,
        f"The warehouse {target} cannot be used: {problem}.",
        "See that it runs and that this machine reaches it, and check warehouse.target and warehouse.password_file. "
        "The job tries again by itself.",
    )


def batch_differs(partition: SourcePartition, problem: str) -> CdcError:
    """A batch that an earlier task has begun, and that cannot be finished as it was begun."""
    return CdcError(
        Code.WAREHOUSE_BATCH,
        f"The open batch of {partition} cannot be finished: {problem}.",
        "Find out who changed the objects of warehouse.location, the topic or the group's offsets. "
        f"{WAREHOUSE_FAULTS.advise_rewrite(partition.topic)}",
    )


def signals_differ(partition: SourcePartition, offset: int | None, problem: str) -> CdcError:
    """A committed offset that is not the end of the last signal."""
    known = "has no offset" if offset is None else f"has the offset {offset}"
    return CdcError(
        Code.WAREHOUSE_BATCH,
        f"The writer's group {known} of {partition}, but {problem}.",
        "Find out who changed the group's offsets or the topic of the signals, and commit the offset at which the last "
        f"signal ends. {WAREHOUSE_FAULTS.advise_rewrite(partition.topic)}",
    )


def signal_unreadable(partition: SourcePartition, offset: int) -> CdcError:
    """A message of a topic of signals that is none."""
    return CdcError(
        Code.WAREHOUSE_BATCH,
        f"The message at offset {offset} of {partition} is no signal of this version.",
        "Find out who sent it, or run the version of the writer.",
    )


def signals_too_few(signals: str, found: int, wanted: int) -> CdcError:
    """A topic with more partitions than its topic of signals."""
    return CdcError(
        Code.WAREHOUSE_BATCH,
        f"The topic of signals {signals} has {found} partitions, and the topic has {wanted}.",
        f"Add partitions to it: `kafka-topics.sh --alter --topic {signals} --partitions {wanted}`.",
    )


def command_refused(command: str, target: str) -> CdcError:
    """A command that the warehouse of the settings does not have."""
    return CdcError(
        Code.WAREHOUSE_SETTING,
        f"`cassandra-warehouse {command}` cannot be used with {target}://.",
        "docs/guides/warehouse.md says which targets have it.",
    )


def tables_differ(count: int) -> CdcError:
    return CdcError(
        Code.WAREHOUSE_AUDIT,
        f"{count:,} rows of the warehouse differ from their topics.",
        "Find out who changed the tables. `cassandra-warehouse audit --repair` makes the rows those of the topics.",
    )


def table_busy(table: TableName) -> CdcError:
    return CdcError(
        Code.WAREHOUSE_AWAY,
        f"The table {table} was loaded while this command changed its state.",
        "Run the command again.",
    )


def topic_empty(topic: str) -> CdcError:
    return CdcError(
        Code.WAREHOUSE_SETTING,
        f"The topic {topic} has no rows: its table stays as it is.",
        "Name a topic with messages, or drop the table and its row of the table `state`, while the job is stopped.",
    )


class WarehouseFaults(Faults):
    """The errors of tables."""

    words = Words("warehouse", "table", "topic", "load", "loaded")
    setting = Code.WAREHOUSE_SETTING

    def advise_collision(self) -> str:
        return (
            "Load them with jobs of their own into other warehouses, or exclude one of them "
            "(warehouse.excluded_topics)."
        )

    def advise_rewrite(self, topic: str) -> str:
        """The fix where the writer's position and its signals cannot be continued."""
        return (
            f"To write {topic} again, give the jobs another group_id, and drop its table and its row of the table "
            "`state`."
        )

    def location_refused(self, location: str, problem: str) -> CdcError:
        """stream_runtime.stores.faults.StoreFaults."""
        return CdcError(
            Code.WAREHOUSE_LOCATION,
            f"The location {location} of the warehouse's objects cannot be used: {problem}.",
            "Set warehouse.location to s3://bucket/folder with credentials that may list, read, write and delete below "
            "it. The warehouse must read it too.",
        )

    def store_away(self, location: str, problem: str) -> CdcError:
        """As location_refused."""
        return CdcError(
            Code.WAREHOUSE_STORE_AWAY,
            f"The location {location} of the warehouse's objects does not answer: {problem}.",
            "See that the store is up and that workers and driver reach it. It is tried again by itself.",
        )

    def advise_restart(self, topic: str) -> str:
        return f"The table of {topic} stays correct up to its last load. {_AGAIN}"


WAREHOUSE_FAULTS = WarehouseFaults()

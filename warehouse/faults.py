"""The errors of tables of a warehouse: a factory for each situation, with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.faults import Faults
from stream_runtime.words import Words

if TYPE_CHECKING:
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


def tables_differ(count: int) -> CdcError:
    return CdcError(
        Code.WAREHOUSE_AUDIT,
        f"{count:,} rows of the warehouse differ from their topics.",
        "Find out who changed the tables. `cassandra-warehouse audit --repair` makes the rows those of the topics.",
    )


def table_busy(table: TableName) -> CdcError:
    return CdcError(
        Code.WAREHOUSE_AWAY,
        f"The table {table} was loaded while its repair or its reload ended.",
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

    def advise_restart(self, topic: str) -> str:
        return f"The table of {topic} stays correct up to its last load. {_AGAIN}"


WAREHOUSE_FAULTS = WarehouseFaults()

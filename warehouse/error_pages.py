"""The warehouse's error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.WAREHOUSE_MESSAGE: Explanation(
        "Message cannot become a row of a warehouse",
        meaning="""A message has no key, or its key or value is not Avro with Confluent's header, or not of its schema.
        The message of the error names partition, offset and reason, without values. The table stops at its last load,
        and the job tries again after pauses of up to 5 minutes. Other tables continue.""",
        cause="Another program wrote to the topic, or the topic's messages are not Avro.",
        fix="Find out who sent the message. Exclude topics of another format (`warehouse.excluded_topics`).",
    ),
    Code.WAREHOUSE_VALUE: Explanation(
        "Value that the warehouse cannot hold",
        meaning="""The type of a column in the warehouse cannot hold a value, such as a text with U+0000 or a date in
        the year 300,000 in PostgreSQL. The message of the error names column, partition and offset. The table stops at
        its last load. Other tables continue.""",
        cause="Cassandra's types hold more than those of the warehouse.",
        fix="""Correct the row in Cassandra: the newest version of a row is loaded, so a correction that arrives in the
        same load is enough. Or set `warehouse.on_value_refused = "null"` and restart the job: such values become null,
        and are counted (`cdc_warehouse_nulled_total`).""",
    ),
    Code.WAREHOUSE_SCHEMA: Explanation(
        "Schema that its table cannot take",
        meaning="""A schema has a field without a type in the warehouse, or a field whose type is not a wider form of
        the column's. The table stops at its last load. Other tables continue.""",
        cause="""A column was dropped and added with another type, the form of a column was changed, or the topic has a
        union of several types.""",
        fix="""Choose a form that the warehouse has ([data types](data-types.md#forms)), or load the table again from
        the topic's beginning, as the message of the error says.""",
    ),
    Code.WAREHOUSE_STATE: Explanation(
        "State of a warehouse's table does not fit",
        meaning="""The state of a table is not that of its topic, or a load would leave a gap or repeat messages. The
        table stops before anything is changed. Other tables continue.""",
        cause="""Somebody changed the table `state`, or two jobs load different topics into one table.""",
        fix="Restore the row of the state from a backup of the warehouse, together with the table, or load it again.",
    ),
    Code.WAREHOUSE_TABLE: Explanation(
        "Statement refused by the warehouse",
        meaning="""The warehouse refuses a statement of a load, which is then undone as a whole. The message of the
        error has the warehouse's own reason, unless that could have values of rows. The table stops at its last load,
        and the job tries again. Other tables continue.""",
        cause="""The table was there before its first load, somebody changed its columns, or the role lacks rights.""",
        fix="""Undo the change, drop a table that the job did not make, or grant the role what docs/guides/warehouse.md
        lists.""",
    ),
    Code.WAREHOUSE_AWAY: Explanation(
        "Warehouse does not answer",
        meaning="""The warehouse cannot be reached, or another process has the file of DuckDB open. A starting job
        exits. Later the tables that meet it stop, try again, and continue by themselves.""",
        cause="The server is down or refuses the login, or a program keeps DuckDB's file open.",
        fix="See that the server runs. Close programs that have the file open, or raise `warehouse.lock_seconds`.",
    ),
    Code.WAREHOUSE_SETTING: Explanation(
        "Warehouse setting refused",
        meaning="A setting of the warehouse is missing or has no sense beside others.",
        cause="No topics are named, two topics would have one table, or the native core is missing.",
        fix="The message of the error says what to set.",
    ),
    Code.WAREHOUSE_AUDIT: Explanation(
        "Table of a warehouse differs from its topic",
        meaning="""`cassandra-warehouse audit` has found rows that are not those of the topic at exactly the offsets
        that the table is at. It prints the `_key` of the first 20 of each table, and which columns differ.""",
        cause="""Somebody changed rows of the table. Otherwise this is a defect.""",
        fix="""Run `cassandra-warehouse audit --repair TOPIC`. It keeps loads of the table out until it is done.""",
    ),
    Code.WAREHOUSE_PERSONAL: Explanation(
        "Personal data that the warehouse may not have",
        meaning="""A schema has fields that the catalogue of cassandra-schematizer marks as personal, and
        `warehouse.personal_data` does not allow them. The table stops at its last load. Other tables continue.""",
        cause="""The topic is one for personal data, or a field was marked after it was loaded.""",
        fix="""Set `warehouse.personal_data` to `"load"` if this warehouse may have personal data, or to `"leave_out"`.
        Load a table again that has such a column (`cassandra-warehouse reload`): the new table is made without it.""",
    ),
    Code.WAREHOUSE_LOCATION: Explanation(
        "Location of a warehouse's objects refused",
        meaning="""An object cannot be stored or read below `warehouse.location`, or the location is no folder of S3. A
        starting job exits. Later the tables that meet it stop, try again, and continue by themselves.""",
        cause="The credentials lack rights, the bucket is missing, or the store ignores `If-None-Match`.",
        fix="Correct `warehouse.location`, or grant the rights that docs/guides/warehouse.md lists.",
    ),
    Code.WAREHOUSE_STORE_AWAY: Explanation(
        "Store of a warehouse's objects does not answer",
        meaning="""The store of S3 cannot be reached, answers with an error of its own (5xx), or asks to slow down, and
        some tries in a row did not help. A starting job exits. Later the tables that meet it stop, try again, and
        continue by themselves.""",
        cause="The network or the store is down or overloaded.",
        fix="See that the store answers workers and driver. Nothing is lost while Kafka keeps the messages.",
    ),
    Code.WAREHOUSE_BATCH: Explanation(
        "Objects and signals of a warehouse do not fit",
        meaning="""The writer's committed offset is not the end of the last signal, a batch that was begun cannot be
        finished as its intent says, or a message of a topic of signals is none. The table stops before anything is
        committed. Other tables continue.""",
        cause="""Somebody changed the offsets of the group, the topic of the signals, or objects of the location; or
        retention deleted messages of a batch before it was finished.""",
        fix="""The message of the error says what differs. If the state of the table and its objects are whole, commit
        the offset at which the last signal ends.""",
    ),
    Code.WAREHOUSE_PAUSED: Explanation(
        "Table of a warehouse is paused",
        meaning="""A user has paused the table. It is not loaded, by no job, until a user resumes it. Other tables
        continue. Kafka keeps the messages as long as the topic does.""",
        cause="Somebody ran `cassandra-warehouse pause`.",
        fix="Run `cassandra-warehouse resume TOPIC`. The jobs continue within 10 seconds.",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.PROGRAM),
    Code.REGISTRY_UNREACHABLE: (Scope.TABLE,),
    Code.REGISTRY_REFUSED: (Scope.TABLE,),
    Code.RAW_SKIPPED: (Scope.TABLE,),
    Code.STATE_MISMATCH: (Scope.TABLE,),
    Code.RAW_PARTITIONS_CHANGED: (Scope.TABLE,),
    Code.WAREHOUSE_MESSAGE: (Scope.TABLE,),
    Code.WAREHOUSE_VALUE: (Scope.TABLE,),
    Code.WAREHOUSE_SCHEMA: (Scope.TABLE,),
    Code.WAREHOUSE_STATE: (Scope.TABLE,),
    Code.WAREHOUSE_TABLE: (Scope.TABLE,),
    Code.WAREHOUSE_AWAY: (Scope.TABLE, Scope.START),
    Code.WAREHOUSE_SETTING: (Scope.COMMAND, Scope.START),
    Code.WAREHOUSE_AUDIT: (Scope.COMMAND,),
    Code.WAREHOUSE_PERSONAL: (Scope.TABLE, Scope.COMMAND),
    Code.WAREHOUSE_PAUSED: (Scope.TABLE,),
    Code.WAREHOUSE_LOCATION: (Scope.TABLE, Scope.START),
    Code.WAREHOUSE_STORE_AWAY: (Scope.TABLE, Scope.START),
    Code.WAREHOUSE_BATCH: (Scope.TABLE,),
    Code.UNEXPECTED: (Scope.TABLE,),
    Code.RAW_PARTITION_STOPPED: (Scope.TABLE,),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}
"""How much of the program each code stops."""

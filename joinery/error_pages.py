"""The error codes of joins: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.JOIN_PLAN: Explanation(
        "Join does not fit",
        meaning="""A join of a joins file does not fit the newest schemas of its inputs; the message says which and
        why.""",
        cause="""A column does not exist, two compared columns have types whose values are never equal, two columns of
        the joined rows have one name, or an input's topic has no change envelopes.""",
        fix="""Correct the join, then run `cassandra-joinery check` again ([guide](../guides/joins.md)).""",
    ),
    Code.JOIN_INPUT: Explanation(
        "Input cannot be joined",
        meaning="""The catalogue assigns several topics to an input of a join.""",
        cause="""The source got another key, or a schema that its first topic does not take. Its rows are in several
        topics, and a join reads one.""",
        fix="""Disable the topics that nothing is written to any more, or join another source.""",
    ),
    Code.JOIN_MESSAGE: Explanation(
        "Message not joined",
        meaning="""A join cannot take a message of an input, or of its internal topic. The message of the error names
        join, topic, partition, offset and reason, without values. That partition stops there; all before is joined.
        Other partitions continue. The job retries after pauses of up to 5 minutes.""",
        cause="""The message is not in the Confluent wire format, its bytes do not fit the schema in its header, or
        its row before the change is left out.""",
        fix="""Correct what wrote the message. To skip a message of an input: stop the job, set the offset of the group
        `<group_id>.<join>` to the next one (`kafka-consumer-groups --reset-offsets --to-offset`), start the job. Joined
        rows may lack that change then.""",
    ),
    Code.JOIN_REPEATED: Explanation(
        "Target has joined rows already",
        meaning="""The job's group has joined no message of a partition yet, but the target's partition has messages. It
        stops, because it would send them a second time.""",
        cause="""Another join has the same target, the group or the join was renamed, or the group has expired.""",
        fix="""Give each join its own target. After a new name, use a new target too, or delete the old topic.""",
    ),
    Code.JOIN_HISTORY: Explanation(
        "History of a join lost",
        meaning="""An input changes a row that the join should know and does not. Kafka has compacted or deleted a
        message of that row before the join has read it, so a joined row may be wrong. That partition stops there;
        others continue.""",
        cause="""The job was away, or late, for longer than Kafka keeps replaced messages (`min.compaction.lag.ms`,
        `retention.ms`). Or the input's chain of changes is broken: `before` is not the row of the change before.""",
        fix="""Stop the job and run `cassandra-joinery rebuild`: it reads the inputs from the beginning, and sends the
        joined rows that differ. Raise `min.compaction.lag.ms` of the inputs' topics.""",
    ),
    Code.JOIN_LIMIT: Explanation(
        "Too many joined rows",
        meaning="""A change of one row of an input would change more joined rows than `most_rows` of the join. The
        message has their number, the number of rows that each input has with that join key, and the first digits of the
        SHA-256 of the key's bytes in place of the key. The partition of that key stops before the change; all before
        is joined. Other partitions continue.""",
        cause="""Many rows have one join key: often a default value, such as 0 or an empty text.""",
        fix="""Raise `most_rows` in the joins file and restart the job: it continues with that message. Or filter the
        rows of that key out (`where`), with a new name and a new target. The message at that offset of the internal
        topic has the key.""",
    ),
    Code.JOIN_AUDIT: Explanation(
        "Joined rows differ",
        meaning="""`cassandra-joinery audit` compared a target with the join of its inputs, at the target's
        offsets. Joined rows are missing, have other values or are not in the inputs; the lines above name each by its
        key. Or the join has not run yet.""",
        cause="""Something else has written to the target, Kafka has deleted messages of an input, of the internal topic
        or of the target, or the join has a defect. After a changed selection, rows that have not changed since are as
        they were.""",
        fix="""Look at the target's message at the named offset: `source` says which message of an input it comes from.
        To correct the target, stop the job and run `cassandra-joinery rebuild` ([guide](../guides/joins.md#audit)).""",
    ),
    Code.JOIN_CHANGED: Explanation(
        "Definition of a join has changed",
        meaning="""The state of a partition, or a message of the internal topic, was made by another definition of the
        join: with other columns, types, filters or optional inputs. The partition stops: rows of two definitions do not
        fit together. Nothing was sent.""",
        cause="""The join was changed in the joins file, or a selected column has another type now.""",
        fix="""Stop the job and run `cassandra-joinery rebuild` ([guide](../guides/joins.md#rebuild)). If the change
        was a mistake, put the definition back and restart the job. Rebuild it all the same if messages were routed
        since.""",
    ),
    Code.JOIN_REBUILD: Explanation(
        "Join not rebuilt",
        meaning="""`cassandra-joinery rebuild` could not rebuild a join; the message says why. If it has begun, the
        partitions of the join are stopped (CDC-054) until a run is complete.""",
        cause="""The joined rows have another key than the target, the registry does not take their schema for the
        target's topic, or the job runs.""",
        fix="""Stop the job. For another key, or an incompatible schema, give the join another name and another
        target.""",
    ),
    Code.JOIN_CASE: Explanation(
        "Case of a join failed",
        meaning="""`cassandra-joinery try` ran a case. The case does not fit its join, one of its changes cannot be
        joined, or the joined rows are others than the case expects; the message says which.""",
        cause="""The joins file or the case is not as it was meant.""",
        fix="""Compare what the command has printed with what you expect, then correct the joins file or the case
        ([guide](../guides/joins.md#try-it-on-a-few-rows)).""",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TABLE, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TABLE,),
    Code.REGISTRY_UNREACHABLE: (Scope.COMMAND, Scope.RAW_PARTITION, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.COMMAND, Scope.TABLE, Scope.START),
    Code.RAW_SKIPPED: (Scope.RAW_PARTITION,),
    Code.RAW_PARTITIONS_CHANGED: (Scope.TABLE,),
    Code.STATE_MISMATCH: (Scope.RAW_PARTITION, Scope.TABLE),
    Code.STATE_DAMAGED: (Scope.RAW_PARTITION,),
    Code.STATE_FORMAT: (Scope.RAW_PARTITION,),
    Code.JOIN_PLAN: (Scope.COMMAND, Scope.TABLE),
    Code.JOIN_INPUT: (Scope.COMMAND, Scope.TABLE),
    Code.JOIN_MESSAGE: (Scope.RAW_PARTITION,),
    Code.JOIN_CHANGED: (Scope.RAW_PARTITION,),
    Code.JOIN_LIMIT: (Scope.RAW_PARTITION,),
    Code.JOIN_REPEATED: (Scope.RAW_PARTITION,),
    Code.JOIN_AUDIT: (Scope.COMMAND,),
    Code.JOIN_REBUILD: (Scope.COMMAND,),
    Code.JOIN_CASE: (Scope.COMMAND,),
    Code.JOIN_HISTORY: (Scope.RAW_PARTITION,),
    Code.TRANSACTION_EXPIRED: (Scope.RAW_PARTITION,),
    Code.UNEXPECTED: (Scope.RAW_PARTITION, Scope.TABLE),
    Code.RAW_PARTITION_STOPPED: (Scope.RAW_PARTITION,),
    Code.CHECKPOINT_LOCATION: (Scope.START, Scope.RAW_PARTITION),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}
"""How much of the program each code stops."""

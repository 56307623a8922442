"""The transformers' error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.TRANSFORM_FAILED: Explanation(
        "Message not transformed",
        meaning="""A transformer cannot transform a message. The message of the error names transformer, topic,
        partition, offset and reason, without values. That partition stops there: everything before is sent, nothing
        after. Other partitions continue. The job retries after pauses of up to 5 minutes.""",
        cause="""A number or a bit has no name in the step, or another program wrote to the topic: the message is not in
        the Confluent wire format, or its bytes do not fit the schema in its header.""",
        fix="""Add the number to the step's `names` or `bits`, or set its `unknown`, then restart the job. To skip a
        message: read it with a consumer, stop the job, set the group's offset to the next one (`kafka-consumer-groups
        --reset-offsets --to-offset`), start the job.""",
    ),
    Code.TRANSFORM_STEP: Explanation(
        "Step does not fit",
        meaning="""A step of a transformers file does not fit the schema of its source; the message says which and why.
        Only the partitions of that topic stop. The job does not start if no transformer of the file fits.""",
        cause="""A column does not exist or is not an integer, a key column would be removed, or a name is taken. Or a
        masked column was renamed or dropped: a mask that finds nothing to mask would let values through.""",
        fix="""Correct the step, then restart the job. `cassandra-transformer check` checks the file first. Mask a
        new name, and keep the old one in a step of its own with `missing = "ignore"`: unread messages may have it.""",
    ),
    Code.TRANSFORM_SOURCE: Explanation(
        "Source topic changed",
        meaning="""The source topic of a transformer is not the one that it read before. Messages of one key may now
        come in another order than they were written.""",
        cause="""The topic was deleted and recreated, has another number of partitions, or has lost messages that were
        not read yet.""",
        fix="""To get everything once and in order, give the transformer another name and another target: it then reads
        the topic from its beginning. To continue with what is there, set the group's offset (`kafka-consumer-groups
        --reset-offsets`), which also accepts the number of partitions.""",
    ),
    Code.TRANSFORM_REPEATED: Explanation(
        "Target has messages already",
        meaning="""The transformer's group has sent no message of a source partition yet, but the target's partition has
        or had messages. It stops, because it would send all of them a second time.""",
        cause="""Another transformer has the same target, this one was renamed, or its group was deleted or has expired.
        Or the source topic was deleted, with the group's offsets, and recreated.""",
        fix="""If there are two transformers, or a new name, give this one its own new target. If the group was lost,
        commit the last offset again (`kafka-consumer-groups --reset-offsets --to-offset`) if you know it. Otherwise
        delete the target topic and start from the beginning.""",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TOPIC,),
    Code.REGISTRY_UNREACHABLE: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.TRANSFORM_FAILED: (Scope.RAW_PARTITION,),
    Code.TRANSFORM_STEP: (Scope.TOPIC, Scope.START),
    Code.TRANSFORM_SOURCE: (Scope.RAW_PARTITION,),
    Code.TRANSFORM_REPEATED: (Scope.RAW_PARTITION,),
    Code.TRANSACTION_EXPIRED: (Scope.RAW_PARTITION,),
    Code.UNEXPECTED: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.RAW_PARTITION_STOPPED: (Scope.RAW_PARTITION,),
    Code.CHECKPOINT_LOCATION: (Scope.START,),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}
"""How much of the program each code stops."""

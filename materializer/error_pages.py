"""The materializer's error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import (
    ANOTHER_TOPIC,
    CLOCK,
    DAMAGED_STATE,
    EMPTY,
    MORE_PARTITIONS,
    REBUILD,
    SNAPSHOT,
    TRUNCATE,
)
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.RAW_SKIPPED: Explanation(
        "Skipped raw messages",
        meaning="""The next raw message has a higher offset than the position. Continuing would publish wrong rows, so
        the raw partition stops. The changes in between are missing from the stream. The table itself still has its
        rows.""",
        cause="""Kafka deleted messages that were not materialized yet (`kafka.raw_retention_hours`, `retention.bytes`),
        or someone moved the group's offset.""",
        fix=f"""To recover, {REBUILD}. To prevent it, watch the alerts `CdcRetentionNear` and `CdcRetentionVeryNear`,
        which fire 48 and 12 hours before Kafka may delete the first unread message. Raise the raw topic's
        `retention.ms` to gain time.""",
    ),
    Code.STATE_MISMATCH: Explanation(
        "State does not match the committed offset",
        meaning="The consumer group's committed offset and metadata do not fit the state in the checkpoint location.",
        cause="""The group was reset or deleted, or expired (the job was stopped for longer than the brokers'
        `offsets.retention.minutes`, 7 days); the checkpoint location was exchanged or restored; the raw topic was
        recreated; or a job with another `materializer.group_id` publishes to the same topics.""",
        fix=f"""Set `materializer.group_id` and `materializer.checkpoint_location` back to the pair that belongs
        together, or commit the lost offset with its metadata, if you have a copy. Do not take them from the newest
        changelog: its transaction may have been aborted. Otherwise {REBUILD}; if the message says that a `rebuild` was
        begun, run it again. Each `kafka.topic_prefix` has one job.""",
    ),
    Code.CHANGE_TOPIC_RECREATED: Explanation(
        "Change topic deleted",
        meaning="""A change topic was deleted, and perhaps created again. Its rows are missing. The raw partitions stop
        before they send anything to the new topic. The job looks every 10 seconds, and when it starts.""",
        cause="""A person or a tool deleted the topic. Brokers may create it again by themselves
        (`auto.create.topics.enable`).""",
        fix="""If the topic's partitions or settings are wrong, delete it: the job creates it again. Then run
        `cassandra-materializer resend KEYSPACE.TABLE --yes` and `cassandra-materializer retry`. The job sends every row
        again, as an `r` ([how](../guides/recover.md#a-change-topic-was-deleted)).""",
    ),
    Code.STATE_DAMAGED: Explanation(
        "Damaged state",
        meaning="""A changelog or a snapshot in `materializer.checkpoint_location` cannot be used; the message names the
        file. The raw partition stops, with its position unmoved: it never restarts from empty state. A damaged local
        RocksDB does not cause this: it is discarded and restored without a message.""",
        cause="""The file is missing, torn or fails its checksum. No other tool (lifecycle rule, cleaner) may delete
        there.""",
        fix=f"""Bring the file back from a backup or an earlier object version; or delete a damaged snapshot's `.json`;
        or {REBUILD} ({DAMAGED_STATE}).""",
    ),
    Code.STATE_FORMAT: Explanation(
        "Unsupported state or message format",
        meaning="""A stored state or a message has a format version that this build does not read. A build reads states
        of its own version and the one before, and messages of all earlier versions.""",
        cause="""A later build wrote it: this build is older than another one that runs, or than the one that ran
        before. Or a release between the two was left out.""",
        fix="""Run the build that wrote it, or upgrade step by step. Each release's changelog says whether a format
        changed.""",
    ),
    Code.RAW_PARTITIONS_CHANGED: Explanation(
        "Number of raw partitions changed",
        meaning="""A raw topic has another number of partitions than when its state was made. Earlier and later messages
        of one row would be in different partitions, so the topic's raw partitions stop. Other tables continue.""",
        cause="""Partitions were added, `reshard` has not ended, a publisher sends by the old number, or the topic was
        recreated with fewer.""",
        fix=f"""If partitions were added, run `cassandra-materializer state reshard` ({MORE_PARTITIONS}). If a message
        is in the wrong partition, restart its publisher, then reshard again. If there are fewer partitions, unread
        messages are lost: {REBUILD}. Never change the partitions of a *change* topic: a key would move.""",
    ),
    Code.CLOCK_AHEAD: Explanation(
        "Clock ahead",
        meaning="""A raw partition's time (its brokers' LogAppendTime) is ahead of the Spark host's clock and of most
        publishers' clocks by more than `materializer.max_clock_ahead_hours`. Rows with a TTL would expire early, which
        cannot be undone, so it stops. A table that was idle for days does not stop for that reason.""",
        cause="""The clock of a broker or of the host is wrong. The message names three times; two that agree are
        probably right.""",
        fix=f"""Compare them with a fourth clock (`chronyc tracking` on the broker that leads the raw partition, and on
        the host) and correct the wrong one: {CLOCK}.""",
    ),
    Code.RAW_MESSAGE_UNREADABLE: Explanation(
        "Unreadable raw message",
        meaning="""Either a message of the tables topic cannot be read: this concerns all tables, and the materializer
        ends. Or a change cannot be written as its schema says: then only its raw partition stops. An unreadable raw
        message stops nothing (CDC-080).""",
        cause="""The message is damaged, has a later format, or another program wrote to the topic. A change that cannot
        be written is a defect of this program.""",
        fix="""Upgrade the materializer before the publishers. Let only publishers write to these topics (ACLs). Report
        a defect.""",
    ),
    Code.NOT_SUPPORTED: Explanation(
        "Unsupported feature",
        meaning="""The raw partition stops before data that this build cannot publish completely. The message names the
        feature.""",
        cause="The data use a feature of Cassandra that this build does not implement.",
        fix=f"Upgrade, if a newer build implements it. Otherwise set `cdc = false` on the table, and later {REBUILD}.",
    ),
    Code.DEAD_LETTERED: Explanation(
        "Dead-lettered raw message",
        meaning="""A warning: a raw message cannot be read. It is in `<prefix>.dead.<keyspace>.<table>` with key, value
        and reason. All others go on. Changes of its Cassandra partition have `source.incomplete` until it is
        resolved.""",
        cause="It is damaged, has a later format, or did not come from a publisher.",
        fix=f"""`cassandra-materializer dead-letters ls` lists what is unresolved. If it has a later format, upgrade,
        then run `dead-letters replay`: it is folded by its write timestamps, as if it were late. If it is not from a
        publisher, run `dead-letters discard ID`, and let only publishers write to raw topics (ACLs). Otherwise
        {REBUILD}.""",
    ),
    Code.TOO_MANY_DEAD_LETTERS: Explanation(
        "Too many dead letters",
        meaning="""More messages of one raw partition cannot be read than `materializer.max_dead_letters`. The raw
        partition stops before the one that the message names. Nothing is lost.""",
        cause="Another program writes to the raw topic, or publishers are much newer than the materializer.",
        fix="""Stop that program, or upgrade. If the messages stay unreadable, raise the limit: the raw partition reads
        a `discard` or `replay` (CDC-080) only after the messages before it. Then resolve the dead letters.""",
    ),
    Code.FORM_CHANGED: Explanation(
        "Form of a column changed",
        meaning="""The settings give a table's columns another form than its change topic has. The table stops before
        its next message; all others go on. The message names the column and both forms.""",
        cause="""`materializer.decimals`, one of its neighbours or `materializer.type_forms` was changed, or a new
        version has other defaults, after the topic had its first schema. Old messages would be read wrongly.""",
        fix="""Set the topic's forms again: `materializer.type_forms` takes them by table. To change them, drop the
        topic and its subjects, and rebuild the table ([how](../guides/consumers.md#how-do-i-change-a-form)).""",
    ),
    Code.TOPIC_VERSION: Explanation(
        "New version of a change topic",
        meaning=f"""The table continues in `<topic>-v2`, `-v3` and so on. Each key of the former topic ends with a `d`,
        each present row comes as `r` in the new one ({ANOTHER_TOPIC}). Each raw partition logs `rows moved` when it is
        done. A key that is changed back returns to its former topic.""",
        cause="""The table's key changed, or its columns changed so that readers of the topic could not read them. With
        `materializer.topics` = `registry`, a field became personal or no longer is: the registry's decision says
        why.""",
        fix="Subscribe consumers to the new topic. Delete the old one when they have read it.",
    ),
    Code.KEY_NOT_REPRESENTABLE: Explanation(
        "Row key not representable in Avro",
        meaning=f"""A warning: a change is not in its topic, because its primary key has no Avro value of its own. The
        row is folded and the partition continues. The log names segment and position of the write. Values of other
        columns never cause this ({EMPTY}).""",
        cause="""The key has an empty value of a type without one in Avro (`blobAsInt(0x)`), a null of a compact table,
        a text that is not UTF-8, or a second form of a partition key value (`blobAsBoolean(0x02)`, or a tuple without
        its last fields): one message key would stand for two rows.""",
        fix="If readers need the row, write it under another key and delete this one.",
    ),
    Code.PUBLISHER_STALLED: Explanation(
        "Stalled publisher",
        meaning="""A warning: for `materializer.stalled_publisher_seconds` a raw topic has had no watermark of a
        publisher that sent to it before. Changes of other nodes go on. Tombstones are not purged, because its log may
        hold an older write that they shadow; the state grows.""",
        cause="The publisher does not run or cannot reach Kafka, or its node is gone.",
        fix="""Start it: what it sends then is merged as if it had come in time. If the node is gone for good, add the
        host id of the warning to `materializer.forgotten_publishers` and restart the materializer. Remove it again
        before a publisher with that id returns: its messages would be merged, but nothing would wait for them.""",
    ),
    Code.NOT_TRUNCATED: Explanation(
        "A node was not truncated",
        meaning="""Other nodes truncated a table, this one did not: its publisher has sent its log up to a minute after
        the `TRUNCATE`, without a truncation. Cassandra still has its earlier rows, but the change topic has none of
        them.""",
        cause="""`TRUNCATE` failed on the node, or took longer than `materializer.truncate_seconds` from the first node
        to the last.""",
        fix=f"""If it failed, run it again, which ends the alert. If it was slow, set `materializer.truncate_seconds` to
        the longest such time, and {SNAPSHOT} of the table ({TRUNCATE}).""",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.CASSANDRA_UNREACHABLE: (Scope.COMMAND,),
    Code.CASSANDRA_AUTH: (Scope.COMMAND,),
    Code.CASSANDRA_QUERY: (Scope.COMMAND,),
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TOPIC,),
    Code.TOPIC_NAMES_COLLIDE: (Scope.TOPIC,),
    Code.TOPIC_PREFIX_TAKEN: (Scope.TOPIC,),
    Code.REGISTRY_UNREACHABLE: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.SCHEMA_UNKNOWN: (Scope.RAW_PARTITION,),
    Code.RAW_SKIPPED: (Scope.RAW_PARTITION,),
    Code.STATE_MISMATCH: (Scope.RAW_PARTITION,),
    Code.STATE_DAMAGED: (Scope.RAW_PARTITION,),
    Code.STATE_FORMAT: (Scope.RAW_PARTITION,),
    Code.RAW_PARTITIONS_CHANGED: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.CLOCK_AHEAD: (Scope.RAW_PARTITION,),
    Code.RAW_MESSAGE_UNREADABLE: (Scope.RAW_PARTITION,),
    Code.NOT_SUPPORTED: (Scope.RAW_PARTITION,),
    Code.TOO_MANY_DEAD_LETTERS: (Scope.RAW_PARTITION,),
    Code.MESSAGE_TOO_LARGE: (Scope.RAW_PARTITION,),
    Code.TRANSACTION_EXPIRED: (Scope.RAW_PARTITION,),
    Code.UNEXPECTED: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.RAW_PARTITION_STOPPED: (Scope.RAW_PARTITION,),
    Code.DEAD_LETTERED: (Scope.MESSAGE,),
    Code.KEY_NOT_REPRESENTABLE: (Scope.MESSAGE,),
    Code.NEEDS_SNAPSHOT: (Scope.NOTHING,),
    Code.TOPIC_VERSION: (Scope.NOTHING,),
    Code.FORM_CHANGED: (Scope.TOPIC,),
    Code.PUBLISHER_STALLED: (Scope.NOTHING,),
    Code.NOT_TRUNCATED: (Scope.NOTHING,),
    Code.CHANGE_TOPIC_RECREATED: (Scope.RAW_PARTITION,),
    Code.CHECKPOINT_LOCATION: (Scope.RAW_PARTITION, Scope.START),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}
"""How much of the program each code stops."""

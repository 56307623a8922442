"""The codes that stop a raw partition, a topic or the materializer's job (CDC-050 to 059, 071, 080 to 086, 093)."""

from __future__ import annotations

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import (
    CHECKPOINT,
    CLOCK,
    DAMAGED_STATE,
    LARGE_CHANGES,
    MORE_PARTITIONS,
    REBUILD,
    SPARK,
    STOPPED,
)

EXPLANATIONS = {
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
    Code.SPARK_SETTING: Explanation(
        "Invalid Spark setting",
        meaning="The job cannot run correctly in this Spark. The message says why, and the fix.",
        cause="""Spark Connect, a refused setting (`spark.speculation`: two attempts of one task would fence each
        other), executors whose Python is not on the driver's machine, or no Java that Spark can run on.""",
        fix=f"Correct it in spark-defaults.conf ({SPARK}), or install Java.",
    ),
    Code.SPARK_FAILED: Explanation(
        "Spark job failed",
        meaning="""A batch failed after Spark's own retries, for a reason that no other code names; the message has
        Spark's last error in plain words. If a restart of the query probably heals it (event `spark restarts`), the job
        tries that after 1, 2, 4 … 60 s, and ends after 10 minutes of failures. Unfinished work was never visible. An
        exception that one raw partition meets is CDC-084, and stops only that one.""",
        cause="""Most often an executor died (out of memory: see its log), the driver lost its workers, the driver's JVM
        died, or the cluster's manager ended the application.""",
        fix="""Start the materializer again: it continues from the group's offsets. If memory was short, lower
        `materializer.chunk_max_bytes`, or give the executors more.""",
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
    Code.CHECKPOINT_LOCATION: Explanation(
        "Checkpoint location refused",
        meaning="""The checkpoint location cannot be read or written. A starting job exits. Later the raw partitions
        that meet it stop, try again every 10 s, and continue by themselves. A call that hangs is given up after three
        quarters of `materializer.transaction_timeout_seconds`.""",
        cause="""A folder is read-only, full, not mounted or hangs; a bucket is away; or its key may not read, list,
        write and delete below the folder.""",
        fix=f"""Correct that. On S3, driver and executors take credentials from their environment (`AWS_ACCESS_KEY_ID`,
        `AWS_SECRET_ACCESS_KEY`, or the instance's role). Endpoint and region are in the location's query
        ({CHECKPOINT}).""",
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
    Code.MESSAGE_TOO_LARGE: Explanation(
        "Change too large for its topic",
        meaning="""A change has the row before and after, and its compressed message is larger than the change topic's
        `max.message.bytes`. The raw partition stops before its chunk. The message names topic, size, write timestamp
        and the partition's token (`SELECT … WHERE token(key) = …` finds it).""",
        cause="A large row, or a topic with a small limit.",
        fix=f"""Raise `max.message.bytes` of the topic, with room; `cassandra-materializer retry` applies it now. Or set
        `materializer.on_large_message`: `without_before` leaves out the row before (`source.left_out` says so);
        `dead_letter` sends the change to the dead-letter topic, and the row's next change corrects it
        ({LARGE_CHANGES}).""",
    ),
    Code.TRANSACTION_TIMEOUT: Explanation(
        "Transaction timeout",
        meaning="""The brokers refuse the job's transaction timeout, so the materializer ends: the setting is the same
        for all raw partitions. It asks at its start; without the right to describe the brokers' settings, the first
        transaction shows it.""",
        cause="`materializer.transaction_timeout_seconds` is more than the brokers' `transaction.max.timeout.ms`.",
        fix="Lower the one or raise the other.",
    ),
    Code.UNEXPECTED: Explanation(
        "Unexpected exception",
        meaning="""A raw partition, or the plan of a raw topic, met an exception that no other code describes. Only that
        one stops. Nothing is lost: its position stays before the messages. It is tried again at least every 5
        minutes.""",
        cause="""A defect of this program, most often data that nothing has tested. Some are caused by the machine: a
        full disk under `materializer.state_directory`, or too little memory. Those end with their cause.""",
        fix=f"""Report it with the trace, which has no row values: the logs of the driver and of the executor have it
        once (event `raw partition stopped`, key `trace`). Upgrade once it is fixed. Raise the raw topic's
        `retention.ms` in time ({STOPPED}).""",
    ),
    Code.TRANSACTION_EXPIRED: Explanation(
        "Transaction expired",
        meaning="""The brokers aborted a raw partition's transaction. Nothing of it is visible, nothing is lost, and it
        runs again by itself.""",
        cause="""It was open for longer than `materializer.transaction_timeout_seconds`: a process was stopped, brokers
        or the checkpoint location are slow, or chunks are too large.""",
        fix="""See how long changelogs take to be stored. Lower `materializer.chunk_max_bytes` and `chunk_max_messages`,
        or raise the timeout.""",
    ),
    Code.RAW_PARTITION_STOPPED: Explanation(
        "Stopped raw partition",
        meaning=f"An alert: a raw partition has been stopped for 5 minutes. All others go on. {STOPPED}.",
        cause="""The label `code` names it. `cassandra-materializer status` (`cassandra-transformer status` for a
        transformer) shows message, offset, lag, fix, and the time until Kafka may delete what is unread.""",
        fix="Do what that code's section says, then wait for the next try or run `cassandra-materializer retry`.",
    ),
}

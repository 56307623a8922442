"""The codes about one table: published or not, snapshots, topic versions (CDC-061 to 069, 087 to 089)."""

from __future__ import annotations

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import ANOTHER_TOPIC, EMPTY, SNAPSHOT, TRUNCATE, UNPUBLISHED, WAITING

EXPLANATIONS = {
    Code.TABLE_WAITS: Explanation(
        "Table waits",
        meaning="""The publisher does not send the changes of one table for now; all others go on. The segments with its
        mutations are kept, up to `publisher.waiting_max_percent`. Beyond that the table is marked as needing a snapshot
        (CDC-065). `cassandra-publisher status` shows table, reason and fix.""",
        cause="""The code of the reason says it: Kafka refuses the topic (CDC-021), the registry refuses the subject
        (CDC-031), the name (CDC-023, CDC-062), the topic's settings (CDC-022), an unreadable type (CDC-063).""",
        fix=f"""Do what the reason's fix says. The publisher tries again after pauses of up to a minute, and then sends
        what it has kept, in order ({WAITING}). `ALTER TABLE … WITH cdc = false` or `DROP TABLE` gives it up.""",
    ),
    Code.TOPIC_NAME: Explanation(
        "Topic name too long",
        meaning="""The raw topic `<prefix>.raw.<keyspace>.<table>` of a table would have more than the 249 characters
        that Kafka allows. The table waits (CDC-061).""",
        cause="Newer versions of Cassandra allow longer names of tables and keyspaces than a topic has room for.",
        fix="""`ALTER TABLE … WITH cdc = false` or `DROP TABLE`: what the log still has of it is then skipped. Or
        choose a shorter `kafka.topic_prefix` for the whole cluster, before it publishes anything.""",
    ),
    Code.TABLE_NOT_PUBLISHED: Explanation(
        "Unpublished table",
        meaning="""A table with `cdc = true` cannot be published. All other tables go on. `cassandra-publisher status`
        and `check` show table and reason. A table with a type that this build cannot read waits (CDC-061).""",
        cause=f"""It is a materialized view, a super column family, a Thrift table whose column names are not text, a
        custom type decides the order of its rows or elements ({UNPUBLISHED}), or a type is nested over 100 deep.""",
        fix="""`ALTER … WITH cdc = false` ends the message and saves room in `cdc_raw`. For a view, publish the base
        table instead. If you drop the column that is the reason, the table is published again and needs a snapshot
        (CDC-065).""",
    ),
    Code.TABLE_CDC_DISABLED: Explanation(
        "CDC disabled on a table",
        meaning="""A published table now has `cdc = false`. Earlier writes are published, however late they are read.
        Later writes are not. Exceptions are possible for writes up to the end of the segment that was newest at the
        switch, and for writes that the publisher reads only after `cdc` is on again. Its change topic stays; rows with
        a TTL do not expire there until then. Nothing else stops.""",
        cause="`ALTER TABLE … WITH cdc = false`.",
        fix="If that was not intended: `ALTER TABLE … WITH cdc = true`, then see CDC-065.",
    ),
    Code.NEEDS_SNAPSHOT: Explanation(
        "Table needs a snapshot",
        meaning="""The table's change topic lacks writes: rows may be missing, old, or deleted in Cassandra only.
        `<prefix>.tables` has the time before which a snapshot is too early.""",
        cause="""Its `cdc` was off or it was excluded, and it is published again; a node did not take part in a
        `TRUNCATE` (CDC-089); the log that a `TRUNCATE` or a waiting table (CDC-061) needed was removed; its raw topic
        was deleted; or a segment was lost (CDC-069). The publisher does not notice if `cdc` goes off and on within
        `publisher.schema_poll_seconds`, or while it does not run.""",
        fix=f"""For the table, {SNAPSHOT}: it brings what is missing or old. Rows deleted since then go if their
        tombstone is still there, otherwise with `cassandra-materializer audit --repair`.""",
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
    Code.SEGMENT_LOST: Explanation(
        "Lost segment",
        meaning="""A commit log segment disappeared before the publisher had sent all of it: changes of this node are
        lost, unless another replica's publisher sends them. Every published table is marked as needing a snapshot
        (CDC-065). The log has the segments' ids.""",
        cause="""Somebody deleted files in `cdc_raw` or in the spool, the node dropped them (`cdc_block_writes: false`
        with a full `cdc_raw`), or their disk is lost.""",
        fix=f"""For each table, {SNAPSHOT} (`publisher.snapshot = "when_needed"` takes it by itself). Rows whose
        deletion is lost go with `cassandra-materializer audit --repair`.""",
    ),
    Code.SNAPSHOT_GIVEN_UP: Explanation(
        "Snapshot given up",
        meaning="""This node's part of a table's snapshot has stopped for good; `cassandra-publisher status` keeps the
        reason. Everything else goes on, and purging no longer waits for this node. Rows that were not sent are missing
        until they are written.""",
        cause="""A damaged SSTable (the message names it) or one of an old version, an unpublished table, or a
        cancel: here, or on all nodes that knew of it before.""",
        fix=f"""If an SSTable is damaged, run `nodetool scrub`, or remove the file and run `nodetool repair`
        (`cassandra-sstable verify` finds all). If it has an old version, run `nodetool upgradesstables`. Then
        {SNAPSHOT} again: one that was given up cannot continue, as tombstones may be purged.""",
    ),
    Code.SNAPSHOT_STALLED: Explanation(
        "Snapshot stalled",
        meaning="""An alert: this node's snapshot of a table has made no progress for an hour. Until it ends, no
        tombstone of that table is purged on any raw partition, the state grows, and compaction cannot free the SSTables
        that it holds.""",
        cause="""`cassandra-publisher status` says what it waits for: nodetool, Kafka, room in `cdc_raw`, the log up to
        the flush (on 3.11: does the filler run?), or `--resume`.""",
        fix="""Remove the cause, or cancel it: `cassandra-publisher snapshot KEYSPACE.TABLE --cancel`. If the node is
        gone for good, put its host id into `materializer.forgotten_publishers`.""",
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

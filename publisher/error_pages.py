"""The publisher's error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import SNAPSHOT, UNPUBLISHED, WAITING
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.CHANGES_WOULD_BE_LOST: Explanation(
        "Changes would be lost",
        meaning="""The node or a keyspace is set up so that changes bypass the CDC log unnoticed. The publisher does not
        start; for a keyspace only at its first start. While it runs it checks once a minute, and only logs this.
        `cassandra-publisher check` shows every check.""",
        cause="""`cdc_block_writes: false` (4.1+) drops the oldest segments when `cdc_raw` is full.
        `cdc_on_repair_enabled: false` (4.1+) leaves out what repair brings. `durable_writes = false` loses all changes
        of a keyspace. `replication` gives a keyspace no replicas in this datacenter, or SimpleStrategy places them by
        chance.""",
        fix="""Do what the message says. To accept a loss, put its name into `publisher.accept_loss`: cdc_block_writes,
        cdc_on_repair_enabled, durable_writes or replication.""",
    ),
    Code.SPOOLING: Explanation(
        "Segments moved to the spool",
        meaning="""An alert, with `publisher.on_full = "spool"`: complete segments are moved to the spool, so that the
        node keeps accepting CDC writes. Nothing is lost: they are read in order, and deleted once acknowledged. The
        publisher also logs this if it finds segments there when it starts. The message names the spool and its
        size.""",
        cause="`cdc_raw` was 60 % full, because the publisher waits for something (CDC-046).",
        fix="""Remove that cause before the spool is full too. Only a running publisher moves segments. It can be
        started while Kafka is away, unless it has never published before.""",
    ),
    Code.SEGMENTS_STUCK: Explanation(
        "Segments stuck in cdc_raw",
        meaning="""A segment cannot be moved or deleted. It stays where it is, and the publisher tries again. No other
        segment is deleted in its place. While this lasts `cdc_raw` fills (CDC-046). The message names the segment, the
        folder and the reason.""",
        cause="""The spool holds `publisher.spool_max_mib`, less than a tenth of its disk would be free, or a folder
        (also that of `publisher.processed_segments`) is missing or not writable.""",
        fix="""Make room or correct the folder. When the publisher starts, it can also mean that segments wait in a
        former spool directory, or that the spool's disk is not mounted: set `publisher.spool_directory` back until that
        directory is empty, or mount the disk.""",
    ),
    Code.SEGMENT_UNSUPPORTED: Explanation(
        "Unsupported segment format",
        meaning="""The segment is sound, but this build cannot read it. It reads Cassandra 3.11 to 5.0: plain,
        encrypted, or compressed by LZ4, Snappy, Deflate or Zstd. Nothing is lost while `cdc_raw` has room.""",
        cause="""Another commit log version, a compressor class of your own, an encryption other than
        `AES/CBC/PKCS5Padding`, or a key that is not in `publisher.keystore`. The message says which.""",
        fix="""Missing key: set the keystore (CDC-045). Otherwise install a build that reads it. Without one, undo the
        option in the node's cassandra.yaml and restart the node: then new segments can be read, but those in `cdc_raw`
        still cannot.""",
    ),
    Code.POSITION_FILE: Explanation(
        "Unusable publisher files",
        meaning="The position file or the schema history in `publisher.state_directory` cannot be used.",
        cause="""It cannot be written, is damaged, belongs to another node, has a later build's format, or another
        publisher uses the folder.""",
        fix="""Give each node's publisher its own folder on a persistent disk (mode 0700, files 0600), and an empty one
        after the node was replaced. A lost position file is harmless: the publisher starts at the oldest segment of
        `cdc_raw`, and the materializer recognises what it has seen. A lost schema history is harmless too, unless
        unread segments mention a table or a type that was dropped, or a `TRUNCATE`, a `DROP` or a switch of `cdc` was
        not published yet. Keep all other files.""",
    ),
    Code.LOG_ENCRYPTED: Explanation(
        "Encrypted commit log",
        meaning="""The node encrypts its commit log. Its changes would be plain text in Kafka and in everything that is
        made from them. The publisher starts only with both settings below, and refuses one without the other.""",
        cause="`transparent_data_encryption_options` in the node's cassandra.yaml.",
        fix="""Set `publisher.allow_plaintext_downstream = true` and `publisher.keystore` if Kafka's own encryption and
        access rights are enough for this data. Otherwise leave CDC off for it.""",
    ),
    Code.KEYSTORE: Explanation(
        "Unreadable keystore",
        meaning="The publisher cannot open `publisher.keystore`.",
        cause="""It does not exist, the publisher's user may not read it, it is not a JCEKS keystore, or its password is
        wrong.""",
        fix="""Take `keystore`, `keystore_password` and `key_password` from the `key_provider` in
        `transparent_data_encryption_options` (cassandra.yaml); prefer `publisher.keystore_password_file` and
        `key_password_file`. Convert a PKCS12 keystore with `keytool -importkeystore -deststoretype JCEKS`.""",
    ),
    Code.CDC_RAW_FILLING: Explanation(
        "cdc_raw is filling",
        meaning="""An alert: `cdc_raw` has grown past 50, 75 or 90 % of the node's limit (`cdc_total_space` less one
        segment). It says how full it is, when it will be full at the rate of the last 10 minutes, and what the
        publisher waits for. Once full, the node refuses writes to tables with `cdc = true` until segments are
        published.""",
        cause="""Most often Kafka is away or slow. Or the node writes more than Kafka takes: see
        `cdc_publisher_delivery_seconds`.""",
        fix="""Bring Kafka back. To win time, raise `cdc_total_space` (a restart, one node at a time) or set
        `publisher.on_full = "spool"`. Never delete segments by hand: their changes would be lost.""",
    ),
    Code.CDC_RAW_WAS_FULL: Explanation(
        "cdc_raw was full",
        meaning="""An alert: the node refused CDC writes between the two times that the alert names (`since` is `before`
        if it already did so when the publisher started). A write that succeeded on other replicas is missing on this
        node. Their publishers may have sent it.""",
        cause="`cdc_raw` was full (CDC-046).",
        fix="""On 3.11, 4.1 and 5.0 do nothing: hints bring the writes. 4.0 keeps no hints: run `nodetool repair
        KEYSPACE TABLE` on this node for the tables that the alert names. Repaired rows go through the commit log, so
        they reach the stream.""",
    ),
    Code.QUARANTINED: Explanation(
        "Quarantined mutation",
        meaning="""An alert: a mutation could not be decoded. Its bytes are in `publisher.state_directory/quarantine`
        (mode 0600: they hold row values). All others are published. Changes of its Cassandra partition have
        `source.incomplete` until it is replayed. The log line names segment, position and reason.""",
        cause="Most often one batch with a table that was dropped before this publisher first saw it.",
        fix="""Create the table again with its columns and id (`WITH ID = ...`, which `quarantine replay` prints), run
        `cassandra-publisher quarantine replay`, and drop it. Or copy the `schema.json` of a publisher that
        knew the table to this machine, not into this publisher's own folder, and replay with `--schema COPY`. If it is
        a defect, report it. To give the mutation up, run `quarantine discard FILE:POSITION`, and repair its tables.""",
    ),
    Code.QUARANTINE_FULL: Explanation(
        "Quarantine full",
        meaning="""More mutations could not be decoded than `publisher.quarantine_max_mutations` (1,000) or
        `quarantine_max_mib` (64) allow. The table of the next one waits (CDC-061). If that mutation is of several
        tables or of an unknown one, the publisher stops, and `cdc_raw` fills (CDC-046). Nothing is lost.""",
        cause="So many usually have one cause: a lost schema history, an unknown Cassandra version, or damage.",
        fix="""Remove the cause, run `cassandra-publisher quarantine replay`, and start again. Or raise the limit, if
        the disk has room.""",
    ),
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
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.CASSANDRA_UNREACHABLE: (Scope.WAITS, Scope.START),
    Code.CASSANDRA_AUTH: (Scope.START, Scope.PROGRAM),
    Code.CASSANDRA_QUERY: (Scope.START, Scope.PROGRAM),
    Code.CDC_DISABLED: (Scope.START,),
    Code.CDC_RAW_MISSING: (Scope.START, Scope.PROGRAM),
    Code.NODETOOL_FAILED: (Scope.COMMAND,),
    Code.CHANGES_WOULD_BE_LOST: (Scope.NOTHING, Scope.START),
    Code.SPOOLING: (Scope.NOTHING,),
    Code.SEGMENTS_STUCK: (Scope.NOTHING, Scope.START),
    Code.KAFKA_UNREACHABLE: (Scope.TABLE, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.TABLE, Scope.START, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TABLE, Scope.START),
    Code.TOPIC_NAMES_COLLIDE: (Scope.TABLE,),
    Code.TOPIC_NAME: (Scope.TABLE,),
    Code.TOPIC_PREFIX_TAKEN: (Scope.START,),
    Code.REGISTRY_UNREACHABLE: (Scope.TABLE, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.TABLE, Scope.START),
    Code.MESSAGE_TOO_LARGE: (Scope.TABLE,),
    Code.SEGMENT_CORRUPT: (Scope.PROGRAM,),
    Code.SEGMENT_UNSUPPORTED: (Scope.PROGRAM,),
    Code.POSITION_FILE: (Scope.START, Scope.PROGRAM),
    Code.SCHEMA_UNKNOWN: (Scope.MESSAGE, Scope.TABLE),
    Code.LOG_ENCRYPTED: (Scope.START,),
    Code.KEYSTORE: (Scope.START,),
    Code.CDC_RAW_FILLING: (Scope.NOTHING,),
    Code.CDC_RAW_WAS_FULL: (Scope.NOTHING,),
    Code.QUARANTINED: (Scope.MESSAGE,),
    Code.QUARANTINE_FULL: (Scope.TABLE, Scope.PROGRAM),
    Code.TABLE_WAITS: (Scope.TABLE,),
    Code.TABLE_NOT_PUBLISHED: (Scope.COMMAND, Scope.TABLE),
    Code.TABLE_CDC_DISABLED: (Scope.NOTHING,),
    Code.NEEDS_SNAPSHOT: (Scope.NOTHING,),
    Code.SEGMENT_LOST: (Scope.NOTHING,),
    Code.SNAPSHOT_GIVEN_UP: (Scope.COMMAND,),
    Code.SNAPSHOT_STALLED: (Scope.NOTHING,),
}
"""How much of the program each code stops."""

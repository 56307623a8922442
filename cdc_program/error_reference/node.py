"""The codes of Cassandra, of the publisher and of the filler beside a node (CDC-010 to 019, 040 to 049)."""

from __future__ import annotations

from cdc_program.error_reference.explanation import Explanation
from cdc_program.error_reference.links import CASSANDRA_RIGHTS, DAMAGED_SEGMENT, SNAPSHOT
from cdc_program.errors import Code

EXPLANATIONS = {
    Code.CASSANDRA_UNREACHABLE: Explanation(
        "Cassandra unreachable",
        meaning="""No contact point accepted a connection, or a query had no answer in time. A starting program exits. A
        running publisher waits and reads nothing, because only the node knows whether a table was altered; it continues
        by itself. If the node takes writes but answers no CQL (`nodetool disablebinary`), `cdc_raw` fills
        (CDC-046).""",
        cause="""The node is down, listens on another address (`native_transport_port`, `rpc_address`), or a firewall is
        in the way.""",
        fix="""Check `nodetool status`. Set `cassandra.contact_points` and `cassandra.port` to nodes of the CDC
        datacenter.""",
    ),
    Code.CASSANDRA_AUTH: Explanation(
        "Cassandra login or permission refused",
        meaning="""Cassandra refused the login, or a query of a table that the program reads. A running publisher or
        filler exits, and its unit restarts it.""",
        cause="""The role is unknown, its password is wrong, or it lacks a right. A node that cannot read its roles
        refuses all logins: for a moment while it starts, or if `system_auth` is not replicated to its datacenter.""",
        fix=f"""Set `cassandra.username` and `cassandra.password_file`. Grant the role SELECT on `system_schema` and,
        for the filler, MODIFY on its own keyspace (all {CASSANDRA_RIGHTS}).""",
    ),
    Code.CDC_DISABLED: Explanation(
        "CDC disabled on the node",
        meaning="The node's commit log segments never reach `cdc_raw`, so nothing can be published.",
        cause="`cdc_enabled` is not true in the node's cassandra.yaml.",
        fix=f"""Set `cdc_enabled: true` on every node of the CDC datacenter and restart them one by one. Then `ALTER
        TABLE … WITH cdc = true` for each table. Earlier writes are not in `cdc_raw`: {SNAPSHOT} for them.""",
    ),
    Code.CDC_RAW_MISSING: Explanation(
        "Missing cdc_raw directory",
        meaning="""`node.cdc_raw_directory` does not exist, or the publisher's user may not read and write it. Act soon:
        segments accumulate up to `cdc_total_space`. Then the node refuses CDC writes or, with `cdc_block_writes:
        false`, drops the oldest segments and loses changes.""",
        cause="""The path is not `cdc_raw_directory` of cassandra.yaml (by default `cdc_raw` in Cassandra's data
        folder), the publisher runs on another machine, or a container does not mount it.""",
        fix="""Set the path, mount the folder into both containers, and put the publisher's user into Cassandra's group:
        it has to read and to delete files there.""",
    ),
    Code.CASSANDRA_QUERY: Explanation(
        "Cassandra query failed",
        meaning="""Cassandra answered a query with an error that concerns neither the login nor the connection. The
        message has Cassandra's text.""",
        cause="""A table does not exist, this build does not know the version's `system_schema`, or the node is
        overloaded.""",
        fix="""Follow Cassandra's message. If it names a system table, report it with the node's version and the table's
        DESCRIBE.""",
    ),
    Code.FILLER_PAUSED: Explanation(
        "Filler paused or waiting",
        meaning="""A node has too little room. Padding goes to every node of the datacenter, so no filler writes until
        that node has room again. Until then segments of idle tables take longer than `filler.max_segment_age_seconds`
        to reach CDC.""",
        cause="""`cdc_raw` of the node holds more than `filler.cdc_raw_percent` of its limit, or its disk is nearly
        full. The message says which.""",
        fix="""Look at the publisher beside that node: it deletes segments once they are published. Make room if the
        disk is full. The fillers continue by themselves.""",
    ),
    Code.NODETOOL_FAILED: Explanation(
        "nodetool failed",
        meaning="""The filler beside a Cassandra 3.11 node flushes it with `filler.nodetool`, because 3.11 hands a
        segment over once everything in it is flushed. Until this works, full segments wait for Cassandra's own flushes.
        The publisher takes snapshots with `publisher.nodetool` (`snapshot`, `clearsnapshot`, `describering`). It tries
        again every 10 s, and publishing continues.""",
        cause="The message has nodetool's output. Most often nodetool is not on the PATH, or JMX requires a login.",
        fix="""Set the command with all its arguments, such as `["/opt/cassandra/bin/nodetool", "-h", "127.0.0.1", "-u",
        "cdc", "-pwf", "/etc/cassandra/nodetool.pw"]`.""",
    ),
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
    Code.SEGMENT_CORRUPT: Explanation(
        "Damaged segment",
        meaning="""A segment, its index file or a mutation fails its checksum or ends early. The message names file and
        position. In a compressed or encrypted segment, this is the byte where the damaged section begins. The publisher
        stops before it and deletes nothing. A torn end after a crash of the node is not damage.""",
        cause="""Damage of the disk or the memory; a `commitlog_segment_size` of the node that is larger than
        `publisher.max_segment_mib` (or a mutation larger than half of it); or, if every section of an encrypted segment
        fails, the wrong key.""",
        fix=f"""Raise the setting or correct the keystore. Otherwise move the segment out of `cdc_raw` and repair
        ({DAMAGED_SEGMENT}).""",
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
    Code.SCHEMA_UNKNOWN: Explanation(
        "Unknown table schema",
        meaning="""*Publisher*: the node's schema does not show a table or a column that a mutation needs. The table
        waits for it for 10 s, and all others go on; for a batch of several tables all wait. After that, mutations of an
        unknown table are skipped with a warning; others are quarantined (CDC-048). *Materializer*: the schema that a
        raw message names has not arrived in the tables topic. Its raw partition waits before the message, and tries
        again every 10 s. Nothing is lost.""",
        cause="""*Publisher*: the table was dropped before the publisher first saw it; none of its rows is left.
        *Materializer*: the publisher that wrote the message does not run, or the tables topic lost messages.""",
        fix="""Start that publisher: it sends the schemas it knows when it starts. The tables topic must be compacted,
        and nothing may delete its messages.""",
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
        fix="""Copy the `schema.json` of a publisher that knew the table to this machine, then run `cassandra-publisher
        quarantine replay --schema COPY`. Never put it into this publisher's own folder: it has another node's
        truncations. If it is a defect, report it, and replay with the fixed build. To give the mutation up, run
        `quarantine discard FILE:POSITION`, then repair its tables.""",
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
}

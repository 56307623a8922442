"""Codes about Cassandra, Kafka and the schema registry, which several programs have."""

from __future__ import annotations

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import (
    CASSANDRA_RIGHTS,
    DAMAGED_SEGMENT,
    KAFKA_ERRORS,
    KAFKA_RIGHTS,
    LARGE_CHANGES,
    REBUILD,
    SNAPSHOT,
)

EXPLANATIONS: dict[Code, Explanation] = {
    Code.KAFKA_UNREACHABLE: Explanation(
        "Kafka unreachable",
        meaning="""Kafka cannot do this now, and a later try heals it: no broker of `kafka.bootstrap_servers` answers,
        or a leader or coordinator moves. A publisher exits at its very first start, because those settings may never
        have worked. Later it waits, keeps its position, and continues by itself. In the materializer it is a warning
        for the first minute.""",
        cause=f"""The message has [Kafka's error]({KAFKA_ERRORS}). The brokers are down, the port is that of another
        listener, or `kafka.security_protocol` does not fit the listener. If only the first connection works, see the
        brokers' `advertised.listeners`: clients are sent to those addresses. Or a topic has to be created, and fewer
        brokers are up than `kafka.replication_factor`. Or a topic was deleted.""",
        fix="Start the brokers or correct the settings. Watch the room in `cdc_raw` until then.",
    ),
    Code.KAFKA_REFUSED: Explanation(
        "Kafka request refused",
        meaning=f"""A broker refused a request; the message has [its error]({KAFKA_ERRORS}) and what to do. Positions
        have not moved past it. In the publisher the table waits (CDC-061). In the materializer the topic or raw
        partition stops and resumes by itself. A program exits if it cannot do anything without the answer.""",
        cause="""Authentication failed, a right is missing, a message is larger than the topic allows, or a setting is
        wrong. A *fenced* producer was replaced by a newer one for the same partition, which is normal, unless a second
        job has the same `group_id`.""",
        fix=f"""As the message says: correct the {KAFKA_RIGHTS} or the brokers' limits (`max.message.bytes`,
        `min.insync.replicas`). If the program has ended, start it again.""",
    ),
    Code.TOPIC_SETTINGS: Explanation(
        "Wrong topic settings",
        meaning="""A topic lacks a setting that correctness needs. Raw topics need
        `message.timestamp.type=LogAppendTime`: expiry and purging trust the brokers' clock only. The tables topic needs
        compaction. A publisher checks raw topics once a minute; the table of a wrong one waits (CDC-061).""",
        cause="Another client created, recreated or altered the topic.",
        fix=f"""Alter the topic with `kafka-configs.sh` as the message says. Messages that were written with producers'
        timestamps keep them: if the topic was in use, {REBUILD}.""",
    ),
    Code.TOPIC_NAMES_COLLIDE: Explanation(
        "Colliding topic names",
        meaning="""Two topics would differ only in `.` and `_`. Kafka's metrics do not distinguish these, so its brokers
        refuse the second topic. The table whose topic cannot be created waits (CDC-061). In the materializer it
        stops.""",
        cause="Two tables have such names, for example `shop.a_b` and `shop_a.b`. The message names both.",
        fix="""Set `cdc = false` on the table that waits, or drop it: what the log still has of it is skipped. Or do so
        with the other one and delete its topics. A `kafka.topic_prefix` without `_` avoids some collisions.""",
    ),
    Code.TOPIC_PREFIX_TAKEN: Explanation(
        "Topic prefix of another Cassandra cluster",
        meaning="""Two Cassandra clusters publish under one `kafka.topic_prefix`, so tables of the same name would share
        topics. A publisher that finds another cluster's schemas in `<prefix>.tables` does not start and sends nothing.
        If both started at the same moment, the materializer stops the tables that both have.""",
        cause="""Both have the same prefix; or this cluster has a new `cluster_name`, which identifies a cluster. Two
        clusters of the same name cannot be distinguished.""",
        fix="""Give each cluster its own prefix, in the settings of its publishers, fillers and materializer. If raw
        topics have rows of both, start both again under new prefixes.""",
    ),
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
    Code.SCHEMA_UNKNOWN: Explanation(
        "Unknown table schema",
        meaning="""*Publisher*: the node's schema does not show a table or column of a mutation. The table waits for
        10 s, and all others go on; a batch of several tables makes all wait. Then mutations of an unknown table are
        skipped with a warning; others are quarantined (CDC-048). *Materializer*: the schema that a raw message names
        has not arrived. Its raw partition waits before the message, and tries again every 10 s. Nothing is lost.""",
        cause="""*Publisher*: the table was dropped before the publisher first saw it; none of its rows is left.
        *Materializer*: the publisher that wrote the message does not run, or the tables topic lost messages.""",
        fix="""Start that publisher: it sends the schemas it knows when it starts. The tables topic must be compacted,
        and nothing may delete its messages.""",
    ),
    Code.REGISTRY_UNREACHABLE: Explanation(
        "Schema registry unreachable",
        meaning="""`registry.url` gave no HTTP answer in time, or answered with a failure (5xx, 429). Partitions that
        need a new schema wait with their positions unmoved, and continue by themselves. A publisher
        stores the ids that it knows: only new tables wait (CDC-061).""",
        cause="""The registry does not run, the address is wrong as seen from this machine, or its certificate is not
        trusted.""",
        fix="""Check that `curl $URL/subjects` prints a list. `registry.ssl_ca_file`, or `SSL_CERT_FILE` in the
        environment, names other authorities to trust.""",
    ),
    Code.REGISTRY_REFUSED: Explanation(
        "Schema registry request refused",
        meaning="""The registry refused the request. The message has its text and code. In the publisher the
        table waits (CDC-061), in the materializer its raw partitions stop.""",
        cause="""*401, 403*: wrong user or rights. *404*: `url` is not a registry's root. *409, incompatible*: another
        client registered there, or a column was dropped and added with another type. *409, read-only or disabled*:
        closed in the registry. *422*: report it. *Assigns no topics*: `materializer.topics` = `registry` needs
        `cassandra-schematizer`.""",
        fix="""Correct `registry.username`, `password_file` or `url`. If the schema is incompatible, see `GET
        /subjects/<subject>/versions`, then set a level (`PUT /config/<subject>`) or another `kafka.topic_prefix`. If it
        is closed, set the status to `read-write`, or register another schema.""",
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
}

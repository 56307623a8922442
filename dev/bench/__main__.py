"""`make bench NAME=NAME`: measures CPU, memory, sizes and moves. BENCH_ARGS: more arguments (try --help)."""

from __future__ import annotations

import sys

from dev.tools.menu import Choice, start

_MORE = (("BENCH_ARGS", ""),)

CHOICES = (
    Choice("hot-paths", "dev.bench.hot_paths", "2", "CPU seconds per million of each step, as a ratio to a peer"),
    Choice("fold", "dev.bench.fold", "3", "What each kind of write costs the fold, and the native core's share", _MORE),
    Choice(
        "state", "dev.bench.state", "4", "Whether an update's cost grows with the state, 10^5 to 3*10^6 rows", _MORE
    ),
    Choice("moves", "dev.bench.state_moves", "5", "Ten moves of a 10^6-row partition between two workers", _MORE),
    Choice(
        "restore", "dev.bench.restore", "5", "How fast a worker restores a state of 2 GB, from a folder and S3", _MORE
    ),
    Choice("tables", "dev.bench.tables", "40", "What 25, 250 and 1,000 tables cost: idle, latency, restart", _MORE),
    Choice("sizes", "dev.bench.sizes", "1", "Bytes of a write in the log, the topics and the state; no servers"),
    Choice(
        "wide",
        "dev.bench.wide_partitions",
        "10",
        "Memory and time of changes that reach every row of a wide partition",
        (("ROWS", ""),),
    ),
    Choice(
        "publisher-memory",
        "dev.bench.publisher_memory",
        "10",
        "A publisher's memory over 2,000,000 mutations, Kafka stopped half-way",
        _MORE,
    ),
    Choice(
        "publisher-tables",
        "dev.bench.publisher_tables",
        "15",
        "What 1,000 tables cost a publisher beside a node: start, idle, two new tables a second",
        _MORE,
    ),
    Choice("publisher", "dev.bench.publisher", "30", "The publisher beside Debezium and Cassandra's reader", _MORE),
    Choice("snapshot", "dev.bench.snapshot", "10", "From SSTables to Kafka, step by step, beside the log path", _MORE),
    Choice(
        "snapshot-reads", "dev.bench.snapshot_reads", "10", "A node's CPU and read latency during a snapshot", _MORE
    ),
    Choice("materializer", "dev.bench.materializer", "40", "The whole Spark job beside Spark's own passthrough", _MORE),
    Choice("scale", "dev.bench.scale", "15", "Rows per second with 1, 2 and 4 workers, and simulated with more", _MORE),
    Choice(
        "latency", "dev.bench.latency", "8", "From a write to its raw message and its change, at three rates", _MORE
    ),
    Choice(
        "neighbour",
        "dev.bench.neighbour",
        "10",
        "A table's latency while another deletes a partition of 10^6 rows",
        _MORE,
    ),
    Choice("audit", "dev.bench.audit", "5", "Rows per second of the audit of a table, beside the job", _MORE),
    Choice(
        "registry",
        "dev.bench.registry",
        "5",
        "The registry with 10^5 schemas beside Apicurio Registry: requests, times, CPU",
        _MORE,
    ),
    Choice(
        "avro",
        "dev.bench.avro",
        "1",
        "The Avro engine beside fastavro and pyarrow: CPU seconds per million; no servers",
    ),
    Choice(
        "transformer",
        "dev.bench.transformer",
        "1",
        "Five steps of a transformer, by the core and by Python; no servers",
    ),
    Choice(
        "transformer-job",
        "dev.bench.transformer_job",
        "30",
        "The whole job beside Spark's from_avro and to_avro, and Flink SQL; 40 transformers beside ten",
        _MORE,
    ),
    Choice(
        "joinery",
        "dev.bench.joinery",
        "1",
        "Both steps of a join, the first one by the core and by Python; no servers",
    ),
    Choice(
        "joinery-state",
        "dev.bench.joinery_state",
        "10",
        "States of a join of 10^5 to 3*10^6 rows: bytes of a row, CPU of a change, memory of a large group; no servers",
        _MORE,
    ),
    Choice(
        "warehouse",
        "dev.bench.warehouse",
        "5",
        "The warehouse beside Debezium's JDBC sink, into the same PostgreSQL: inserts and updates",
        _MORE,
    ),
    Choice(
        "archive",
        "dev.bench.archive",
        "10",
        "The archive beside Spark's from_avro, into Parquet and into Iceberg: CPU, memory, files",
        _MORE,
    ),
    Choice("raw-forms", "dev.bench.raw_forms", "1", "Forms of a raw message that were compared: bytes and CPU"),
)

if __name__ == "__main__":
    sys.exit(start(CHOICES, "NAME=", sys.argv[1:]))

"""`make verify WHAT=NAME`: compares the project with Cassandra and with models, kills it, damages its input."""

from __future__ import annotations

import sys

from dev.tools.menu import Choice, start

_SEED = (("SEED", "--seed"), ("STATEMENTS", "--statements"))
_STACK = (("VERSION", "--version"), ("CLUSTER", "--cluster=1"))
_DEFECT = (("DEFECT", "--defect"),)
_FOLD_TESTS = ("test_fold_model.py", "test_reorder.py", "test_purge.py", "test_schema_histories.py")

CHOICES = (
    Choice(
        "model",
        "dev.verify.model",
        "2-40",
        "Random statements through all programs, compared with SELECT *; 20 seeds of 5,000",
        (
            *(*_SEED, ("SEEDS", "--seeds"), *_STACK, ("PAUSE", "--pause")),
            *(("TABLES", "--tables"), ("KINDS", "--kinds")),
        ),
    ),
    Choice(
        "cassandra-tests",
        "dev.verify.cassandra_tests",
        "15-40",
        "Cassandra's own CQL tests (SOURCE: a checkout or a jar of sources) through all programs, compared with SELECT",
        (
            *(("SOURCE", "--source"), ("CASE", "--case"), ("CASES", "--cases"), ("BATCH", "--batch")),
            *(_STACK[0], ("LIST", "--list=1")),
        ),
    ),
    Choice(
        "tpch",
        "dev.verify.tpch",
        "1-10",
        "Joins of TPC-H's tables with refreshes and key moves, compared with DuckDB; needs tpchgen-cli, no servers",
        (("SCALE", "--scale"), ("CHANGES", "--changes"), ("SEED", "--seed")),
    ),
    Choice("repro", "dev.verify.model.repro", "3", "A seed of model again, shrunk", (*_SEED, *_STACK, *_DEFECT)),
    Choice(
        "snapshot",
        "dev.verify.snapshot",
        "10-60",
        "Tables that hold data before CDC is on, snapshots under load and kills, compared with SELECT *",
        (
            *(*_SEED, ("SEEDS", "--seeds"), _STACK[0], ("ROWS", "--rows"), ("RATE", "--rate")),
            *(("NODES", "--nodes"), ("RF", "--replication")),
        ),
    ),
    Choice(
        "upgrade",
        "dev.verify.upgrade",
        "8-20",
        "From an older release (git ref, wheel, sdist) to the checkout and back, under load, compared with SELECT *",
        (("FROM", "--from"), _SEED[0], ("NODES", "--nodes"), _STACK[0]),
    ),
    Choice(
        "mutants",
        "dev.verify.model.mutate",
        "45",
        "Defects seeded into the programs: model must find each",
        (*_SEED, *_DEFECT),
    ),
    Choice(
        "chaos",
        "dev.verify.chaos",
        "3-40",
        "Crash at every fault point (RUNS=0 stops there), then kill programs under load 20 times",
        (("SEED", "--seed"), ("RUNS", "--runs"), ("POINT", "--point"), ("MATRIX", "--matrix"), ("SPARK", "--spark")),
    ),
    Choice(
        "fuzz",
        "dev.verify.fuzz",
        "2",
        "Damaged bytes into every reader; only the format's error may come out",
        environment=(("FUZZ_RUNS", "FUZZ_RUNS", "1000000"), ("FUZZ_SEED", "FUZZ_SEED", "1")),
        extra=("fuzz", "atheris"),
    ),
    Choice(
        "native",
        "dev.verify.native",
        "10",
        "Damaged input for the native core under AddressSanitizer; DEFECT=all: without its checks, which must be found",
        (("SEED", "--seed"), ("MINUTES", "--minutes"), ("TARGETS", "--targets"), _DEFECT[0]),
    ),
    Choice(
        "avro",
        "dev.verify.avro",
        "20",
        "The Avro engine and Java's Avro on 1,000,000 messages of random schemas, whole and damaged",
        (("MESSAGES", "--messages"), ("SEED", "--seed")),
    ),
    Choice(
        "archive",
        "dev.verify.archive",
        "5-60",
        "Changes of all CQL types and schemas, archived in both layouts and read by DuckDB, PyIceberg and Spark SQL",
        (("MESSAGES", "--messages"), ("SEED", "--seed"), ("TRINO", "--trino=1"), _DEFECT[0]),
    ),
    Choice(
        "oracle",
        "dev.verify.oracle.run",
        "30",
        "Random CQL's commit logs, read by Cassandra's reader and by ours; every version",
        (("VERSION", "--versions"), ("MUTATIONS", "--mutations"), ("SEED", "--seed")),
    ),
    Choice(
        "oracle-sstable",
        "dev.verify.oracle.sstable_run",
        "60",
        "Random CQL's SSTables, read by Cassandra's reader and by ours; 100,000 partitions of each version and format",
        (("VERSION", "--versions"), ("PARTITIONS", "--partitions"), ("SEED", "--seed")),
    ),
    Choice(
        "oracle-compaction",
        "dev.verify.oracle.compaction_run",
        "30",
        "Random CQL's SSTables, merged and purged by Cassandra and by us; 20,000 partitions of each version",
        (("VERSION", "--versions"), ("PARTITIONS", "--partitions"), ("SEED", "--seed")),
    ),
    Choice(
        "oracle-merge",
        "dev.verify.oracle.merge_check",
        "30",
        "Rows merged by Cassandra's classes and by ours; 1,000,000 for each version",
        (("VERSION", "--versions"), ("MERGES", "--merges"), ("SEED", "--seed")),
    ),
    Choice(
        "oracle-types",
        "dev.verify.oracle.order_check",
        "10",
        "The order of our keys and of Cassandra's comparators; 1,000,000 pairs for each version",
        (("VERSION", "--versions"), ("PAIRS", "--pairs"), ("SEED", "--seed")),
    ),
    Choice(
        "containers",
        "dev.verify.containers",
        "15",
        "Each image, built and run confined beside real servers, on the Docker engine that answers or on Debian's",
        (("JOBS", "--jobs"),),
    ),
    Choice(
        "units",
        "dev.verify.hosts.units",
        "15",
        "Each unit of deploy/systemd on a host with systemd in a container: a change, a stop, a kill -9",
    ),
    Choice(
        "guides",
        "dev.verify.hosts.guides",
        "20",
        "The commands of six guides, word for word and in order, on hosts with logins and ACLs in containers",
    ),
    Choice(
        "compose",
        "dev.verify.containers.compose",
        "8",
        "docker compose up with deploy/compose: a table of one's own, its change, and the next after a restart",
    ),
    Choice(
        "container-tests",
        "dev.verify.containers.run_tests",
        "5",
        "Tests on Cassandra and Kafka in containers (SERVERS=containers) instead of child processes",
        (("TESTS", "--tests"),),
    ),
    Choice(
        "testcontainers",
        "dev.verify.containers.users_test",
        "5",
        "docs/examples/test_orders.py: a user's own test with cassandra_cdc_testcontainers",
    ),
    Choice(
        "dashboards",
        "dev.verify.dashboards",
        "4",
        "Every panel and alert, asked of a Prometheus that scrapes the running stack",
        (("SECONDS", "--seconds"),),
    ),
    Choice(
        "spark-page",
        "dev.verify.spark_page",
        "2",
        "The Streaming tab, lastProgress and Spark's own metrics of the running job, with pictures for the docs",
        (("SECONDS", "--seconds"),),
    ),
    Choice(
        "watson",
        "dev.verify.watson",
        "2",
        "The registry's pages in a real browser: a field's meaning in five clicks, axe, pictures for the docs",
        extra=("browser", "playwright"),
    ),
    Choice(
        "site",
        "dev.verify.site",
        "3",
        "The docs' site in a real browser: every page, search, axe, light, dark and on a phone, pictures for the docs",
        extra=("browser", "playwright"),
    ),
    Choice(
        "fold",
        "pytest",
        "20",
        "The fold against its models, in more examples than each test run has",
        arguments=(
            "-v",
            "--timeout",
            "86400",
            *(f"tests/unit/materializer/fold/{name}" for name in _FOLD_TESTS),
        ),
        environment=(("FOLD_EXAMPLES", "EXAMPLES", "1000"),),
    ),
)

if __name__ == "__main__":
    sys.exit(start(CHOICES, "WHAT=", sys.argv[1:]))

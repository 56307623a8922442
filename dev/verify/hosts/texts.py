"""Words of the guides that a reader replaces, and commands that `make verify WHAT=guides` does not run and why."""

from __future__ import annotations

PAGES = (
    *("install.md", "secure.md", "monitor.md", "snapshot-and-audit.md", "recover.md", "upgrade.md", "back-up.md"),
    *("size.md", "fix-errors.md", "inspect-commit-logs.md", "inspect-sstables.md"),
    *("schematizer.md", "topic-files.md", "topic-files-in-ci.md", "consumers.md", "testcontainers.md", "spark.md"),
    *(f"consumers/{name}.md" for name in ("clickhouse", "flink", "jdbc", "spark")),
    *("transformers.md", "archive.md", "warehouse.md", "joins.md"),
)
USERS_OF_KAFKA = (
    *("admin", "topics", "cdc-publisher", "cdc-materializer", "cdc-schematizer"),
    *("cdc-transformer", "cdc-archive", "cdc-warehouse", "cdc-joinery"),
)

REPLACED = {
    "s3://bucket/cdc?region=eu-west-1": "/var/lib/cassandra-materializer/checkpoint",
    "retry [TOPIC-PARTITION]…": "retry cdc.raw.shop.orders-0",
    "SELECT token(KEY) …": "SELECT token(id) FROM shop.orders",
    "ALTER TABLE … ": "ALTER TABLE shop.waiting ",
    "KEYSPACE.TABLE": "shop.orders",
    "KEYSPACE TABLE": "shop orders",
    "--keyspace KEYSPACE": "--keyspace shop",
    "(FIRST,LAST]": "(0,1000]",
    "SOURCE_DATACENTER": "main",
    "retry TOPIC": "retry cdc.shop.orders",
    "postgresql+psycopg://lake@catalog/lake": "sqlite:////mnt/lake/catalog.db",
    "postgresql://loader@warehouse/analytics": "duckdb:////var/lib/cassandra-warehouse/warehouse.duckdb",
}
"""A placeholder of the guides, and the value here. There is no S3, and no PostgreSQL."""

STATUSES = {"cassandra-materializer status": (0, 4), "cassandra-schematizer docs check docs/tables": (0, 1)}
"""The first ends with 4 while a raw partition is stopped, as monitor.md says. The second ends with 1 if a field has no
documentation, as its page says: the page's file has one of seven.
"""
_NAMED = "it is named, and shown with its arguments elsewhere"
_OTHER_JOBS = "of a job that does not run yet; it is run on the job's own page"
_EXAMPLE = "an example of settings; tests/unit/docs/test_names_in_docs.py knows each key"
_TLS = "of a registry with TLS and logins: tests/e2e/test_secured_registry.py"
_CODE_HOST = "of a code host, as the page says"
_CONTAINERS = "there is no Docker on these hosts: `make verify WHAT=compose` and `testcontainers`"
_CLUSTER = "of a Spark cluster: tests/e2e/test_spark_submit.py"
_YARN = "there is no YARN"
NOT_RUN = {
    "monitor.md: cassandra-transformer *": _OTHER_JOBS,
    "monitor.md: cassandra-archive *": _OTHER_JOBS,
    "monitor.md: cassandra-warehouse *": _OTHER_JOBS,
    "monitor.md: cassandra-joinery *": _OTHER_JOBS,
    "systemctl status cassandra-transformer": _OTHER_JOBS,
    "systemctl status cassandra-archive": _OTHER_JOBS,
    "size.md: nodetool rebuild": _NAMED,
    "size.md: cassandra-publisher observe": _NAMED,
    "inspect-sstables.md: nodetool snapshot": _NAMED,
    "inspect-sstables.md: nodetool upgradesstables": _NAMED,
    "CREATE TYPE": _NAMED,
    "spark.md: cassandra-materializer run": _NAMED,
    "cassandra-schematizer models register": "tests/unit/schematizer/commands/test_commands.py runs it on a module",
    "cassandra-schematizer serve --host*": _TLS,
    "curl --user*": _TLS,
    '[schematizer]\nhost = "0.0.0.0"*': "of a server of OIDC: tests/unit/schematizer/security/test_oidc_server.py",
    "cassandra-schematizer import*": "there is no other registry: tests/unit/schematizer/importing/test_import.py",
    "cassandra-schematizer topics import*": "of two clusters: tests/servers/schematizer/test_topics_on_kafka.py",
    "[[waivers]]*": "no rule is broken",
    "topic-files-in-ci.md: *": _CODE_HOST,
    "topic-files.md: namespace = *": "of a table with other columns; tests/unit/schematizer/topic_files",
    "topic-files.md: [archive]\ndeployment*": _EXAMPLE,
    "[warehouses.analytics]*": _EXAMPLE,
    "[materializer]\nmaps*": _EXAMPLE,
    "connector.class=*": "of Kafka Connect: tests/e2e/test_consumers.py runs the sink",
    "docker compose*": _CONTAINERS,
    "testcontainers.md: pip*": _CONTAINERS,
    "export PYSPARK_*": _CLUSTER,
    "spark-submit --master spark:*": _CLUSTER,
    "export HADOOP_CONF_DIR*": _YARN,
    "spark-submit --master yarn*": _YARN,
    'archive.md: [archive]\ntopics = ["cdc\\\\.shop\\\\..*", "clicks*': _EXAMPLE,
    "warehouse.md: SELECT *": _NAMED,
    "warehouse.md: UPDATE …*": "the loader's own",
    "warehouse.md: DELETE …*": "the loader's own",
    "kafka-configs.sh --alter": _NAMED,
    "cassandra-schematizer topics apply": _NAMED,
    "cassandra-materializer state": _NAMED,
    "cassandra-materializer state show": _NAMED,
    "cassandra-materializer audit": _NAMED,
    "cassandra-commitlog dump": _NAMED,
    "cassandra-sstable dump": _NAMED,
    "nodetool repair": _NAMED,
    "DROP TABLE": _NAMED,
    "nodetool import": "it is named as a cause of a difference",
    "nodetool clearsnapshot": "it is named as a cause of a failure",
    "cassandra-schematizer audit": "without logins there is no audit log; tests/unit/schematizer/security runs it",
    "cassandra-publisher snapshot KEYSPACE.TABLE --cancel": "no snapshot runs then",
}
"""The beginning of a command or statement (a `*` at its end) or all of it, and why it is not run."""

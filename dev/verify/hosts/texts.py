"""Words of the guides that a reader replaces, and commands that `make verify WHAT=guides` does not run and why."""

from __future__ import annotations

USERS_OF_KAFKA = ("admin", "cdc-publisher", "cdc-materializer", "cdc-schematizer")

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
}
"""A placeholder of the guides, and the value here. There is no S3."""

STATUSES = {"cassandra-materializer status": (0, 4)}
"""It ends with 4 while a raw partition is stopped, as monitor.md says."""
_NAMED = "it is named, and shown with its arguments elsewhere"
_OTHER_JOBS = "of a job that is not on these hosts; `make verify WHAT=units` runs it"
NOT_RUN = {
    "cassandra-transformer *": _OTHER_JOBS,
    "cassandra-archive *": _OTHER_JOBS,
    "cassandra-warehouse *": _OTHER_JOBS,
    "cassandra-joinery *": _OTHER_JOBS,
    "systemctl status cassandra-transformer": _OTHER_JOBS,
    "systemctl status cassandra-archive": _OTHER_JOBS,
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

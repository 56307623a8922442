"""Makes docs/example-sstable on a real Cassandra 5.0: `python -m tests.support.vectors.make_example_sstable`.

Two SSTables of one table, with a write, a later write and a deletion of the same rows: what docs/library.md reads.
"""

from __future__ import annotations

import shutil

from cassandra_storage.files.sstables import find_sstables
from dev.local_stack.clients import cql
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.cassandra import CassandraCluster
from tests.support.vectors.sstables import COMPONENTS

FOLDER = project_root() / "docs" / "example-sstable"
KEYSPACE = "shop"
FLUSHES = (
    (
        "INSERT INTO shop.stock (warehouse, product, amount, note) VALUES ('oslo', 'cup', 9, 'blue') USING TIMESTAMP 1",
        "INSERT INTO shop.stock (warehouse, product, amount) VALUES ('oslo', 'tea', 12) USING TIMESTAMP 1",
        "INSERT INTO shop.stock (warehouse, product, amount) VALUES ('rome', 'tea', 7) USING TIMESTAMP 1",
    ),
    (
        "UPDATE shop.stock USING TIMESTAMP 2 SET amount = 39 WHERE warehouse = 'oslo' AND product = 'cup'",
        "DELETE FROM shop.stock USING TIMESTAMP 2 WHERE warehouse = 'oslo' AND product = 'tea'",
    ),
)


def main() -> None:
    cluster = CassandraCluster("5.0")
    try:
        cluster.start()
        with cql.connect(cluster.contact_points, cluster.port) as client:
            client.execute(
                "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            client.execute((FOLDER / "schema.cql").read_text())
            for statements in FLUSHES:
                for statement in statements:
                    client.execute(statement)
                cluster.nodes[0].nodetool("flush", KEYSPACE)
        for old in FOLDER.glob("*.db"):
            old.unlink()
        for file in find_sstables(cluster.nodes[0].folder / "data" / KEYSPACE):
            for component in COMPONENTS:
                if file.path(component).exists():
                    shutil.copyfile(file.path(component), FOLDER / file.path(component).name)
    finally:
        cluster.close()


if __name__ == "__main__":
    main()

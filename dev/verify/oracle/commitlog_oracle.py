"""Cassandra's own CommitLogReader and PartitionUpdate.serializer of any version in one long-lived JVM.

`java/CommitLogOracle.java` tells the commands. It reads the schema of a stopped node from that node's own files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from dev.verify.oracle.java_child import FOLDER, JavaChild

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.cassandra import CassandraNode

# The folders of what differs; all others' is 4.0's and "int".
API_OF = {"3.11": "3.11"}
TIMES_OF = {"5.0": "long", "5.0-NONE": "long"}
_END = '{"end":'


class CommitLogOracle(JavaChild):
    """A context manager over a stopped node; its lines are JSON."""

    def __init__(self, node: CassandraNode) -> None:
        version = node.version
        conf = node.folder / "conf"
        api = FOLDER / f"api-{API_OF.get(version.line, '4.0')}" / "Api.java"
        options = [f"-Dcassandra.config={(conf / 'cassandra.yaml').as_uri()}", "-Xmx512m"]
        options += [f"-Dcassandra.storagedir={node.folder}"]
        options += [f"-Dcassandra-rackdc.properties={(conf / 'cassandra-rackdc.properties').as_uri()}"]
        times = FOLDER / f"times-{TIMES_OF.get(version.line, 'int')}" / "Times.java"
        shared = [FOLDER / f"{name}.java" for name in ("CommitLogOracle", "Description", "MadeUpdates")]
        sources = [*shared, api, times]
        super().__init__(version, sources, options=options, class_path=[conf])

    def __enter__(self) -> Self:
        super().__enter__()
        assert self.answer() == '{"ready":true}'
        return self

    def segment(self, path: Path) -> Iterator[str]:
        """Ask CommitLogReader for the file's mutations and complaints; the last one says how many it passed over."""
        self.send_line(f"segment\t{path}")
        while True:
            line = self.answer()
            yield line
            if line.startswith((_END, '{"error":')):
                return

    def made(self, version: int, seed: int, count: int, keyspace: str, *tables: str) -> Iterator[str]:
        """Random mutations that no statement makes, as Cassandra writes and reads them: "hex" and "updates"."""
        self.send_line(f"made\t{version}\t{seed}\t{count}\t{keyspace}\t{','.join(tables)}")
        for _ in range(count):
            yield self.answer()

    def update(self, version: int, update: bytes, write_version: int | None = None) -> dict[str, Any]:
        """Ask PartitionUpdate.serializer what it reads ("update"), how many bytes it leaves ("left"), and what it
        writes again ("again"), in another version if one is given.
        """
        self.send_line(f"update\t{version}\t{write_version or version}\t{update.hex()}")
        answer: dict[str, Any] = json.loads(self.answer())
        return answer

    def mutation(self, version: int, mutation: bytes) -> str:
        """The updates that Mutation.serializer reads."""
        self.send_line(f"mutation\t{version}\t{mutation.hex()}")
        return self.answer()

"""Segments that a real Cassandra 5.0 writes: inserts of whole rows, then updates of one or two columns."""

from __future__ import annotations

import os
import random
import time
import uuid
from threading import Semaphore
from typing import TYPE_CHECKING, Any

from rich.progress import track

from cassandra_storage.files.segments import OpenSegment
from cassandra_storage.formats.commitlog.descriptor import index_file_name, parse_cdc_index
from cassandra_storage.formats.commitlog.segment import CommitLogEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraNode

KEYSPACE, TABLE = "bench", "events"
BATCH_ROWS = 50
BATCHES_IN_FLIGHT = 32
COMPLETE_SECONDS = 120.0
OPEN_SEGMENTS = 2  # the one that is written, and the next, which Cassandra makes ahead of need
_TEXT = "abcdefghijklmnopqrstuvwxyz 0123456789"


def create_table(client: CqlClient) -> None:
    client.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    client.execute(
        f"CREATE TABLE {KEYSPACE}.{TABLE} (id uuid, at timeuuid, kind int, amount int, note text, price double,"
        " tags map<text, text>, PRIMARY KEY (id, at)) WITH cdc = true"
    )


def write_load(client: CqlClient, mutations: int) -> None:
    """Half of the mutations are inserts, each into a partition of its own; the other half update these rows."""
    rng = random.Random(1)  # noqa: S311 - a load
    keys = [
        (uuid.UUID(int=rng.getrandbits(128), version=4), uuid.uuid1(rng.getrandbits(47))) for _ in range(mutations // 2)
    ]
    insert = client.prepare(
        f"INSERT INTO {KEYSPACE}.{TABLE} (id, at, kind, amount, note, price, tags) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - names
    )
    write_rows(client, insert, ((*key, *_values(rng)) for key in keys), len(keys), "inserts")
    one = client.prepare(f"UPDATE {KEYSPACE}.{TABLE} SET amount = ? WHERE id = ? AND at = ?")  # noqa: S608 - names
    two = client.prepare(f"UPDATE {KEYSPACE}.{TABLE} SET price = ?, note = ? WHERE id = ? AND at = ?")  # noqa: S608 - names
    half = len(keys) // 2
    write_rows(client, one, ((rng.randrange(10**6), *key) for key in keys[:half]), half, "updates of one column")
    rest = len(keys) - half
    write_rows(client, two, ((rng.random(), _text(rng), *key) for key in keys[half:]), rest, "updates of two columns")


def _values(rng: random.Random) -> tuple[object, ...]:
    tags = {"source": rng.choice(("web", "shop", "phone")), "session": _text(rng, 12)}
    return rng.randrange(100), rng.randrange(10**6), _text(rng), rng.random(), tags


def _text(rng: random.Random, length: int = 100) -> str:
    return "".join(rng.choices(_TEXT, k=length))


def write_rows(client: CqlClient, prepared: Any, rows: Iterator[tuple[object, ...]], count: int, what: str) -> None:  # noqa: ANN401 - the driver's statement
    """A batch is one message to the node, and a mutation for each of its partitions."""
    slots = Semaphore(BATCHES_IN_FLIGHT)
    failures: list[Exception] = []

    def done(error: Exception | None) -> None:
        if error is not None:
            failures.append(error)
        slots.release()

    for _ in track(range(0, count, BATCH_ROWS), description=f"Writing {what}"):
        batch = [row for row, _ in zip(rows, range(BATCH_ROWS), strict=False)]
        slots.acquire()
        client.submit(client.batch(prepared, batch), (), done)
        if failures:
            raise failures[0]
    for _ in range(BATCHES_IN_FLIGHT):
        slots.acquire()
    if failures:
        raise failures[0]


def take_segments(node: CassandraNode, folder: Path) -> Path:
    """Hard links, in `folder`, to the segments of the node that are complete once its memtables are flushed."""
    node.nodetool("flush")
    deadline = time.monotonic() + COMPLETE_SECONDS
    while len(_complete(node.cdc_raw)) < len(list(node.cdc_raw.glob("*.log"))) - OPEN_SEGMENTS:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the node has not completed its segments in {node.cdc_raw}")
        time.sleep(0.5)
    return link_segments(_complete(node.cdc_raw), folder)


def link_segments(segments: Iterable[Path], folder: Path) -> Path:
    """Links to segments and their indexes: a reader may move or delete these."""
    folder.mkdir(parents=True)
    for segment in segments:
        for path in (segment, segment.with_name(index_file_name(segment.name))):
            os.link(path, folder / path.name)
    return folder


def table_id(client: CqlClient) -> bytes:
    [row] = client.execute(
        "SELECT id FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s", (KEYSPACE, TABLE)
    )
    found: uuid.UUID = row["id"]
    return found.bytes


def count_mutations(folder: Path, table_id: bytes) -> int:
    """Return how many mutations of the table are in a folder's segments."""
    return sum(
        isinstance(entry, CommitLogEntry) and table_id in entry.mutation[:18]
        for segment in track(sorted(folder.glob("*.log")), description="Counting")
        for entry in OpenSegment(segment).events(None)
    )


def _complete(folder: Path) -> list[Path]:
    return [segment for segment in sorted(folder.glob("*.log")) if _is_complete(segment)]


def _is_complete(segment: Path) -> bool:
    try:
        index = parse_cdc_index(segment.with_name(index_file_name(segment.name)).read_bytes())
    except FileNotFoundError:
        return False  # nothing of it is durable yet
    return index is not None and index.is_completed

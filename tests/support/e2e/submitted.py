"""A job that spark-submit runs over a real stack: what is written for it, what comes out, and what must hold then."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from confluent_kafka import Consumer, TopicPartition

from cdc_common.messages.topics import raw_topic
from dev.local_stack.clients.change_reader import ChangeReader, partition_count
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.spark_submit import SubmittedJob
from dev.local_stack.servers.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting
    from dev.local_stack.servers.spark_cluster import SparkServer

WAIT_SECONDS = 180.0
AGAIN_SECONDS = 3.0
DIGEST_BYTES = 16
# Another job of the group may still be about to end on this machine: none has a port.
OWN: dict[str, Setting] = {"log.level": "debug", "materializer.operations_port": 0}


def submitted_job(
    stack: Stack, master: str, archive: Path, folder: Path, options: tuple[str, ...] = (), **settings: Setting
) -> SubmittedJob:
    """Return a job that takes the place of the stack's own, with its group and checkpoint location. `settings`: of the
    materializer.
    """
    given = {f"materializer.{name}": value for name, value in settings.items()}
    taken = {**stack.materializer.settings, "materializer.state_directory": "state", **OWN, **given}
    return SubmittedJob(master, archive, folder=folder, settings=taken, options=options)


@contextmanager
def stack_of_jobs(folder: Path) -> Iterator[Stack]:
    """A stack whose job is to be stopped, so that submitted ones take its place."""
    os.environ["CDC_SERVERS"] = str(folder / "servers.json")
    with Stack(settings={"publisher.heartbeat_seconds": 2}) as running:
        yield running


class Scene:
    """`tables`: keyspace and name of each that is written to; `history`: all changes from the beginning."""

    def __init__(self, stack: Stack, client: CqlClient) -> None:
        servers = stack.servers
        self.client = client
        self.tables: list[tuple[str, str]] = []
        self.history = History()
        self.reader = ChangeReader(servers.kafka, servers.registry, servers.topic_prefix, lambda _of, _table: True)

    def make_tables(self, keyspace: str, count: int) -> None:
        self.client.execute(
            f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        for number in range(count):
            self.client.execute(f"CREATE TABLE {keyspace}.t{number} (id int PRIMARY KEY, v text) WITH cdc = true")
        self.tables += [(keyspace, f"t{number}") for number in range(count)]

    def write(self, keyspace: str, word: str, rows: int = 10) -> None:
        """The rows of each table of the keyspace, with this value."""
        for of, table in self.tables:
            for number in range(rows) if of == keyspace else ():
                self.client.execute(f"INSERT INTO {of}.{table} (id, v) VALUES (%s, %s)", (number, word))

    def wait_for_changes(self, count: int) -> None:
        """Wait until `count` more have come."""
        wanted = self.history.count + count

        def has_come() -> bool:
            self.history.add(self.reader.poll(0.2))
            return self.history.count >= wanted

        wait_until(has_come, f"{count} changes", WAIT_SECONDS)

    def settle(self) -> int:
        """Wait until what came out is what SELECT shows, and return the number of rows compared. No chain may be
        broken, and nothing may come again.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            self.history.add(self.reader.read_all())
            result = compare(self.client, self.history, self.tables)
            if not result.differences:
                break
            assert time.monotonic() < deadline, result.differences[:5]
            time.sleep(1)
        time.sleep(AGAIN_SECONDS)
        self.history.add(self.reader.read_all())
        assert list(self.history.problems()) == []
        assert compare(self.client, self.history, self.tables).differences == []
        assert all(result.tables.values())
        return result.rows


def raw_messages(stack: Stack, tables: list[tuple[str, str]]) -> int:
    """Return the number of messages, with heartbeats, in those raw topics of these tables that exist."""
    servers = stack.servers
    consumer = Consumer({"bootstrap.servers": servers.kafka, "group.id": "tests", "allow.auto.create.topics": False})
    try:
        topics = [raw_topic(servers.topic_prefix, *table) for table in tables]
        places = [
            TopicPartition(topic, number) for topic in topics for number in range(partition_count(servers.kafka, topic))
        ]
        return sum(consumer.get_watermark_offsets(place, timeout=10)[1] for place in places)
    finally:
        consumer.close()


def as_newer_build(location: Path) -> int:
    """Give every changelog and snapshot the format after this build's; how many."""
    changed = 0
    for path in location.rglob("*.changelog"):
        magic, content = path.read_bytes()[:4], path.read_bytes()[4 + DIGEST_BYTES :]
        content = bytes([content[0] + 1]) + content[1:]
        path.write_bytes(magic + blake2b(content, digest_size=DIGEST_BYTES).digest() + content)
        changed += 1
    for path in location.glob("*/*/snapshots/*.json"):
        fields = json.loads(path.read_bytes().partition(b"\n")[2])
        body = json.dumps({**fields, "format": fields["format"] + 1}).encode()
        digest = blake2b(body, digest_size=DIGEST_BYTES).hexdigest()
        path.write_bytes(digest.encode() + b"\n" + body)
        changed += 1
    return changed


def states(worker: SparkServer) -> set[str]:
    """The raw partitions whose states the worker's executors have had."""
    return {found.name for found in worker.work_directory.glob("app-*/*/state/*/*")}


def check_is_of_archive(pythons: Callable[[], list[int]], library: str, unpacked: Path | None = None) -> None:
    """A library of this name in the executors' Python is the unpacked archive's, and they have no way to anything else
    of our packages. Waits until they have loaded it.

    pythons: the pids of the executors' Pythons. unpacked: where the archive is; by default in their working folders.
    """
    wait_until(lambda: bool(_loaded(pythons(), library)), f"an executor to load {library}", WAIT_SECONDS)
    for folder, path in _loaded(pythons(), library):
        assert (unpacked or folder) in path.parents
    for process in map(psutil.Process, pythons()):
        within = process.cwd()  # where a relative or empty part of the path leads
        given = process.environ().get("PYTHONPATH", "").split(os.pathsep)
        assert not [part for part in given if Path(within, part, "materializer").exists()]


def _loaded(pids: list[int], library: str) -> set[tuple[Path, Path]]:
    """Each with the working folder of its process, which is the executor's."""
    found = set()
    for process in map(psutil.Process, pids):
        with suppress(psutil.NoSuchProcess):  # a daemon's child that has just ended
            maps = process.memory_maps()
            found |= {(Path(process.cwd()), Path(mapping.path)) for mapping in maps if library in mapping.path}
    return found

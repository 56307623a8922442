"""Measure how fast a worker that has nothing restores the state of a raw partition: from a folder, from an S3 server on
this machine, and from one that answers each request after a delay.

The S3 server on this machine shares its cores with the worker. The one with a delay stands for a real S3: it takes
hardly any CPU, and a request waits for it as it waits for a network.

With `--before`, an older version of this project is measured beside this one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil

from dev.bench.results import medians, report
from dev.local_stack.servers.s3 import BUCKET, ENVIRONMENT, REGION, S3Server
from materializer.records import RawPartition
from stream_runtime.state.bulk_load import BulkLoad
from stream_runtime.state.changelog import Head
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dev.bench.results import Figures

GROUP = "bench"
VERSION = "0000000001-00000000"
VALUE_BYTES = 400
MB = 1_000_000
AT_ONCE = 4  # raw partitions, as materializer.worker.local_states
OURS = Path(__file__).resolve().parents[2]


class MeasuredStore(NamedTuple):
    """A checkpoint location, and the processes that serve it."""

    # The name in the results.
    name: str
    # The path or URL of the location.
    location: str
    # The processes whose CPU counts as the location's.
    servers: tuple[psutil.Process, ...] = ()


def raw_partitions(count: int) -> list[RawPartition]:
    return [RawPartition("raw", number) for number in range(count)]


def fill(location: str, folder: Path, megabytes: int, partitions: int) -> int:
    """Store a snapshot of each raw partition's state, all of the same content: the bytes of one."""
    local = open_local_store(folder)
    load = BulkLoad(local, Head(VERSION, 1, 0, partitions), {})
    for number in range(megabytes * MB // (VALUE_BYTES + 16)):
        load.add(b"p%015d" % (number * 7919 % 1_000_000_007), random.randbytes(VALUE_BYTES))  # noqa: S311 - a bench
    load.finish()
    with closing(local):
        for raw_partition in raw_partitions(partitions):
            checkpoints = CheckpointStore(ObjectStore(location), GROUP, raw_partition)
            checkpoints.write_snapshot(VERSION, local.copy().files(), None, is_own=True)
    manifest = CheckpointStore(ObjectStore(location), GROUP, raw_partitions(1)[0]).read_manifest(VERSION)
    return sum(file.size for file in manifest.files)


def restore_all(location: str, folder: Path, partitions: int, at_once: int) -> None:
    store = ObjectStore(location)

    def restore_one(partition: RawPartition) -> None:
        with closing(open_local_store(folder / str(partition))) as local:
            restore(local, CheckpointStore(store, GROUP, partition), VERSION)
            assert local.version == VERSION

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(restore_one, raw_partitions(partitions)))


def work(location: str, folder: str, partitions: str, at_once: str) -> None:
    """Restore the partitions in a separate process. Print seconds, CPU seconds, and the most memory (MB)."""
    began, used, before = time.monotonic(), cpu_seconds(), peak_mb()
    restore_all(location, Path(folder), int(partitions), int(at_once))
    figures = time.monotonic() - began, cpu_seconds() - used, peak_mb() - before
    sys.stdout.write(json.dumps(figures))


def cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def peak_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(place: MeasuredStore, folder: Path, size: int, partitions: int, version: Path) -> Figures:
    """Restore once, by a version of this project, in a new process with an empty folder."""
    served = server_seconds(place)
    at_once = AT_ONCE if version == OURS else 1  # the versions before restored one after another
    command = [sys.executable, "-P", __file__, "--work", place.location, str(folder), str(partitions), str(at_once)]
    environment = {**os.environ, "PYTHONPATH": str(version)}
    done = subprocess.run(command, env=environment, cwd=version, stdout=subprocess.PIPE, text=True, check=True)
    seconds, cpu, memory = json.loads(done.stdout)
    shutil.rmtree(folder)
    return {
        "mb_per_second": size * partitions / MB / seconds,
        "seconds": seconds,
        "cpu_s_per_gb": cpu / (size * partitions / 1e9),
        "server_cpu_s_per_gb": (server_seconds(place) - served) / (size * partitions / 1e9),
        "memory_mb": memory,
    }


def server_seconds(place: MeasuredStore) -> float:
    return sum(sum(server.cpu_times()[:2]) for server in place.servers)


@contextmanager
def slow_s3(root: Path, delay_ms: float) -> Iterator[MeasuredStore]:
    """The server with a delay, over a folder that holds the bucket's folder."""
    command = [sys.executable, "-m", "dev.bench.slow_s3", str(root), "--delay-ms", str(delay_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            location = f"s3://{BUCKET}/folder?scheme=http&endpoint_override=127.0.0.1:{port}&region={REGION}"
            yield MeasuredStore(f"S3, {delay_ms:.0f} ms", location, (psutil.Process(process.pid),))
        finally:
            process.terminate()


def local_s3(stack: ExitStack, filled: Path) -> MeasuredStore:
    """An S3 server on this machine with the same content."""
    known = children()
    server = S3Server()
    stack.callback(server.close)
    server.start()
    location = server.location("folder")
    copy_all(filled, ObjectStore(location))
    return MeasuredStore("S3 here", location, tuple(child for child in children() if child not in known))


def copy_all(folder: Path, store: ObjectStore) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            store.write(str(path.relative_to(folder)), path.read_bytes())


def children() -> tuple[psutil.Process, ...]:
    return tuple(psutil.Process().children())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("dev.bench.restore", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000, help="size of a raw partition's state")
    parser.add_argument("--partitions", type=int, default=1, help="raw partitions that are restored")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--before", type=Path, help="folder of an older version, which is measured too")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.work:
        work(*chosen.work)
        return 0
    os.environ |= ENVIRONMENT
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-restore-")))
        size = fill(str(folder / BUCKET / "folder"), folder / "filled", chosen.megabytes, chosen.partitions)
        shutil.rmtree(folder / "filled")
        places = [
            MeasuredStore("folder", str(folder / BUCKET / "folder")),
            stack.enter_context(slow_s3(folder, chosen.delay_ms)),
            local_s3(stack, folder / BUCKET / "folder"),
        ]
        versions = {"": OURS} | ({", before": chosen.before.resolve()} if chosen.before else {})
        rounds: dict[str, list[Figures]] = {place.name + label: [] for place in places for label in versions}
        for _ in range(chosen.rounds):
            for place in places:
                for label, version in versions.items():
                    found = measure(place, folder / "state", size, chosen.partitions, version)
                    rounds[place.name + label].append(found)
        facts = {
            "state_mb": size // MB,
            "raw_partitions": chosen.partitions,
            "rounds": chosen.rounds,
            "delay_ms": chosen.delay_ms,
        }
        rows = {name: medians(found) for name, found in rounds.items()}
        report("restore", f"Restoring {chosen.partitions} x {size // MB} MB", rows, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())

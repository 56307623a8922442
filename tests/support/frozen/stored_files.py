"""Frozen vectors of what Spark jobs keep in the checkpoint location and in the offsets of their groups."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.primitives.token_ranges import Span
from materializer.commands.audit.compare import Seen
from materializer.commands.audit.first_look import Candidate
from materializer.commands.audit.progress import Progress, ProgressFile
from materializer.commands.audit.select import Unread
from materializer.errors import RAW_FAULTS
from materializer.planning.plan import ChangeTopic
from materializer.planning.topic_cache import TopicCache
from materializer.records import RawPartition
from stream_runtime.exactly_once import committed as committed_offset
from stream_runtime.exactly_once import position
from stream_runtime.records import TopicShape
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore, RetentionSettings
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.snapshots import StateSettings, at_once
from stream_runtime.state.versions import next_version
from tests.support.frozen.messages import KEY, WRITTEN_US
from tests.support.frozen.vectors import Format, Vector, plain
from tests.support.materializer.raw_builder import TABLE, WRITER, int_bytes
from transformer.faults import STREAM_FAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping

RAW = RawPartition("cdc.raw.shop.orders", 0)
GROUP = "cassandra-materializer"
SNAPSHOT_EVERY = 2  # versions: of three the second has a snapshot, and the third a changelog after it
MS = WRITTEN_US // 1000

POSITION = position.Position(4711, "7-0123456789abcdef", 3, "Zm9vYmFy", 2, 1)
RESHARDING = POSITION._replace(in_progress=(100, 4711))
TOPICS = {(TABLE.id.bytes, WRITER.digest): ChangeTopic("cdc.shop.orders", 3, 7, 8)}
AUDIT = Progress(
    table_id=TABLE.id.bytes.hex(),
    consistency="ALL",
    slices=16,
    begun_us=WRITTEN_US,
    done=[0, 2],
    rows=100,
    units=120,
    differences=1,
    settled=2,
    waiting=[Candidate(KEY, (int_bytes(1), None), WRITTEN_US, {"a": Seen("01", "02", WRITTEN_US, None)}, 2)],
    unread=[Unread(Span(-5, 5), "timeout", True)],
    differing=[KEY],
    replaced=1,
)
SHAPE = TopicShape(3, "Zm9vYmFy")


def make_positions() -> list[Vector]:
    shape = {**plain(SHAPE), "at": MS // 1000}
    return [
        Vector("committed", position.encode(POSITION).encode(), plain(POSITION)),
        Vector("resharding", position.encode(RESHARDING).encode(), plain(RESHARDING)),
        Vector("transformer", committed_offset.encode(SHAPE, MS // 1000, sent=True).encode(), shape),
    ]


def read_positions(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    text = data[name].decode()
    if name == "transformer":
        committed = committed_offset.decode(
            POSITION.offset, text, RAW, SHAPE, STREAM_FAULTS
        )  # raises for another shape
        assert committed.sent
        return {**plain(SHAPE), "at": committed.at}
    return plain(position.decode(POSITION.offset, text, RAW, RAW_FAULTS))


def make_files() -> list[Vector]:
    """Written by the classes that own them, into a folder; then read back as files."""
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(folder)
        TopicCache(store, GROUP).write("shop.orders", TOPICS)
        ProgressFile(store, GROUP, RAW.topic).write(AUDIT)
        [topics] = Path(folder).rglob("shop.orders.json")
        [audit] = Path(folder).rglob("progress.json")
        return [
            Vector("topics", topics.read_bytes(), plain(dict(_by_digest(TOPICS)))),
            Vector("audit", audit.read_bytes(), plain(AUDIT)),
        ]


def read_files(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(folder)
        if name == "topics":
            store.write(f"{GROUP}.topics/shop.orders.json", data[name])
            return plain(_by_digest(TopicCache(store, GROUP).read("shop.orders")))
        store.write(f"{GROUP}/{RAW.topic}.audit/progress.json", data[name])
        return plain(ProgressFile(store, GROUP, RAW.topic).read())


def _by_digest(topics: Mapping[tuple[bytes, bytes], ChangeTopic]) -> dict[bytes, ChangeTopic]:
    return {digest: topic for (_, digest), topic in topics.items()}


def make_checkpoints() -> list[Vector]:
    """A checkpoint location: a RocksDB snapshot with its manifest, and a changelog that follows it."""
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(f"{folder}/location")
        settings = StateSettings(SNAPSHOT_EVERY, RetentionSettings(1, 0))
        checkpoints = CheckpointStore(store, GROUP, RAW)
        state = CheckpointedState(open_local_store(Path(folder, "state")), checkpoints, settings, at_once)
        values: dict[bytes, bytes] = {}
        for number in range(SNAPSHOT_EVERY + 1):
            before = state.local.version
            head = Head(next_version(before), number + 1, MS + number, 3)
            writes = {b"p" + int_bytes(number * 10 + at): b"\x01value %d" % at for at in range(5)}
            entry = Changelog(head, before, number, writes)
            state.store_changelog(entry)
            state.apply(entry)
            state.store_snapshot_if_due(head.version)
            values |= writes
        state.close()
        assert checkpoints.snapshots(), "no snapshot is due"
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz") as archive:
            archive.add(f"{folder}/location", arcname=".")
        return [
            Vector("location", packed.getvalue(), {"head": plain(head), "values": plain(values)}),
            Vector("committed version", head.version.encode(), head.version),
        ]


def read_checkpoints(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    version = data["committed version"].decode()
    if name != "location":
        return version
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(data[name])) as archive:
            archive.extractall(f"{folder}/location", filter="data")
        local = open_local_store(Path(folder, "state"))
        try:
            checkpoints = CheckpointStore(ObjectStore(f"{folder}/location"), GROUP, RAW)
            for path in Path(folder).rglob("*.changelog"):  # a restore from the snapshot, not from changelogs alone
                if path.name.split(".")[0] in checkpoints.snapshots():
                    path.unlink()
            restore(local, checkpoints, version)
            return {"head": plain(local.head), "values": plain(dict(local.scan(b"p", b"q")))}
        finally:
            local.close()


FORMATS = (
    Format(
        "positions",
        ("stream_runtime/exactly_once/position.py", "stream_runtime/exactly_once/committed.py"),
        make_positions,
        read_positions,
    ),
    Format(
        "checkpoint-files",
        ("materializer/planning/topic_cache.py", "materializer/commands/audit/progress.py"),
        make_files,
        read_files,
    ),
    Format("checkpoints", ("stream_runtime/state/checkpoints.py",), make_checkpoints, read_checkpoints),
)

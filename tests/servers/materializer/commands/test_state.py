"""`cassandra-materializer state`: lists, shows and verifies."""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from click.testing import CliRunner

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.errors.codes import CdcError, Code
from dev.verify.chaos.matrix import MESSAGES, make_setup
from materializer.cli import main
from materializer.commands.state_show import cassandra_partition_json, serialize_key
from materializer.commands.state_verify import verify_state
from materializer.records import RawPartition
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpoints import MANIFEST_VERSION, CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.restore import restore
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.state.versions import NOTHING, next_version, sequence
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.raw_builder import (
    HOSTS,
    REPAIR,
    SNAPSHOT,
    TABLE,
    WRITER,
    int_bytes,
    repair_step,
    rows_end,
    snapshot_step,
)
from tests.support.materializer.table_statements import PARTITION, delete_range, delete_row, insert, set_static

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.kafka import KafkaBroker

SNAPSHOT_AT = 3
VERSIONS = 5


def stored(folder: Path) -> tuple[CheckpointStore, str]:
    """VERSIONS changelogs with a snapshot of one of the versions, and the committed version."""
    history = CheckpointStore(ObjectStore(str(folder / "location")), "group", RawPartition("raw", 0))
    state = open_local_store(folder / "state")
    for number in range(1, VERSIONS + 1):
        head = Head(next_version(state.version), number, 0, 1)
        entry = Changelog(head, state.version, number - 1, {b"p%d" % number: os.urandom(100)})
        history.write_changelog(entry)
        state.apply(entry)
        if number == SNAPSHOT_AT:
            history.write_snapshot(head.version, state.copy().files(), None, is_own=True)
    committed = state.version
    state.close()
    return history, committed


def test_an_intact_state_is_verified(tmp_path: Path) -> None:
    history, committed = stored(tmp_path)
    verdict = verify_state(history, committed)
    files = [path for path in (tmp_path / "location").rglob("*") if path.is_file()]
    assert (verdict.files, verdict.bytes) == (len(files), sum(path.stat().st_size for path in files))
    assert (verdict.unreferenced, verdict.problems) == (0, ())
    (files[0].parents[1] / "files" / "1-2").write_bytes(b"left over")
    assert verify_state(history, committed).unreferenced == 1


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\x00")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
def test_each_damaged_file_is_named(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    history, committed = stored(tmp_path)
    for path in [path for path in (tmp_path / "location").rglob("*") if path.is_file() and path.stat().st_size]:
        before = path.read_bytes()
        damage(path)
        problems = verify_state(history, committed).problems
        path.write_bytes(before)
        # Without its manifest a snapshot is none, and the changelogs before it are of no use.
        is_old = path.suffix == ".json" or (path.suffix == ".changelog" and sequence(path.name) <= SNAPSHOT_AT)
        assert len(problems) == (damage is not Path.unlink or not is_old), path
        name = path.name.partition(".")[0] if path.suffix == ".changelog" else path.name
        assert all(name in problem for problem in problems)


def test_a_broken_chain_is_found(tmp_path: Path) -> None:
    history, committed = stored(tmp_path)
    changelogs = sorted((tmp_path / "location").rglob("*.changelog"))
    changelogs[0].unlink()  # the snapshot is after it
    assert verify_state(history, committed).problems == ()
    (problem,) = verify_state(history, next_version(committed)).problems
    assert "it is missing" in problem


def test_a_snapshot_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    history, committed = stored(tmp_path)
    (path,) = (tmp_path / "location").rglob("*.json")
    _, _, body = path.read_bytes().partition(b"\n")
    newer = json.dumps(json.loads(body) | {"format": MANIFEST_VERSION + 1}).encode()
    path.write_bytes(blake2b(newer, digest_size=16).hexdigest().encode() + b"\n" + newer)
    state = open_local_store(tmp_path / "another")
    with pytest.raises(CdcError) as raised:
        restore(state, history, committed)
    assert raised.value.code is Code.STATE_FORMAT
    assert str(path) in raised.value.problem
    assert state.version == NOTHING
    state.close()
    assert "format version" in verify_state(history, committed).problems[0]


def test_a_cassandra_partition_is_shown() -> None:
    run = FoldRun(WRITER)
    run.chunk(insert(1, 1, a="secret"), insert(2, 2, a="secret"), delete_row(3, 2), insert(4, 1, b="more"))
    run.chunk(set_static(5, "shared"), delete_range(6, 5, 7))
    shown = cassandra_partition_json(run.state, run.catalog, PARTITION, with_values=True)
    assert shown["partition_key"] == {"k": 1}
    assert [row["clustering"] for row in shown["rows"]] == [{"c": 1}, {"c": 2}]
    assert shown["rows"][0]["columns"]["a"]["value"] == "secret"
    assert shown["rows"][0]["row_sequence"] >= 2
    assert "deletion" in shown["rows"][1]
    assert shown["static_row"]["columns"]["st"]["value"] == "shared"
    assert len(shown["range_tombstones"]) == 1
    masked = json.dumps(cassandra_partition_json(run.state, run.catalog, PARTITION, with_values=False))
    assert "secret" not in masked
    assert "shared" not in masked
    nothing: dict[str, Any] = cassandra_partition_json(run.state, run.catalog, int_bytes(9), with_values=False)
    assert "rows" not in nothing
    assert "snapshots" not in nothing


def test_the_snapshots_that_a_raw_partition_knows_are_shown() -> None:
    run = FoldRun(WRITER)
    run.chunk(snapshot_step("running", ms=5, hosts=(1, 2)), snapshot_step("ended", ms=7, hosts=(1, 2)))
    shown = cassandra_partition_json(run.state, run.catalog, PARTITION, with_values=False)
    first, second = (str(UUID(bytes=host)) for host in HOSTS)
    assert shown["snapshots"] == [
        {"snapshot": str(SNAPSHOT), "begun_ms": 5, "changed_ms": 7, "hosts": {first: "ended", second: "running"}}
    ]


def test_the_repairs_of_a_cassandra_partition_are_shown() -> None:
    run = FoldRun(WRITER)
    run.chunk(repair_step(PARTITION, "running", until_ms=9, hosts=(1, 2)), repair_step(int_bytes(9), "running"))
    shown = cassandra_partition_json(run.state, run.catalog, PARTITION, with_values=False)
    first, second = (str(UUID(bytes=host)) for host in HOSTS)
    assert shown["repairs"] == [
        {"repair": str(REPAIR), "state": "open", "until_ms": 9, "hosts": {first: "running", second: "expected"}}
    ]


def test_what_was_truncated_is_shown() -> None:
    run = FoldRun(WRITER)
    for host in (1, 2):
        run.heartbeat(1, host=host)
    run.chunk(rows_end(1000, position=7, ms=2))
    shown = cassandra_partition_json(run.state, run.catalog, PARTITION, with_values=False)
    first, second = (str(UUID(bytes=host)) for host in HOSTS)
    hosts = {first: {"segment": 1, "position": 7, "at_ms": 1000}}
    assert shown["truncations"] == {"at_ms": 1000, "hosts": hosts, "waits": [second], "lost": []}


def table(*types: str) -> TableMetadata:
    columns = (
        ColumnMetadata(f"k{number}", NativeType(name), ColumnKind.PARTITION_KEY, number)
        for number, name in enumerate(types)
    )
    return TableMetadata("shop", "orders", TABLE.id, tuple(columns), (), (), ())


def test_a_key_is_read_from_text() -> None:
    uuid: UUID = TABLE.id
    assert serialize_key(table("int"), ["-2"]) == b"\xff\xff\xff\xfe"
    assert serialize_key(table("text"), ["ä"]) == "ä".encode()
    assert serialize_key(table("uuid"), [str(uuid)]) == uuid.bytes
    assert serialize_key(table("date"), ["0x80000000"]) == b"\x80\x00\x00\x00"
    assert serialize_key(table("bigint", "text"), ["7", "a"]) == b"\x00\x08" + bytes(7) + b"\x07\x00\x00\x01a\x00"
    for types, texts in [(["int"], ["x"]), (["int"], ["1", "2"]), (["date"], ["2026-01-01"]), (["tinyint"], ["300"])]:
        with pytest.raises(CdcError):
            serialize_key(table(*types), texts)


@pytest.mark.servers
def test_states_are_listed_and_verified(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> None:
    setup = make_setup(kafka.bootstrap_servers, topic_prefix, tmp_path)
    setup.run(until=150)
    settings = {
        "kafka.bootstrap_servers": kafka.bootstrap_servers,
        "kafka.topic_prefix": topic_prefix,
        "materializer.group_id": setup.prefix,
        "materializer.checkpoint_location": setup.checkpoint,
    }
    options = [text for name, value in settings.items() for text in ("--set", f"{name}={value}")]
    listed = CliRunner().invoke(main, ["state", "ls", "--json", *options])
    assert listed.exit_code == 0, listed.output
    (found,) = map(json.loads, listed.output.splitlines())
    assert (found["partition"], found["offset"], found["lag"]) == (str(setup.raw), 150, MESSAGES - 150)
    assert found["version"] == max(setup.checkpoints.parents())
    assert (found["snapshots"], found["changelogs"]) == (
        len(setup.checkpoints.snapshots()),
        len(setup.checkpoints.parents()),
    )
    assert "topics" not in found
    assert str(setup.raw) in CliRunner().invoke(main, ["state", "ls", *options]).output
    listed = CliRunner().invoke(main, ["state", "ls", "--json", "--topics", *options])
    assert json.loads(listed.output) == found | {"topics": []}  # this fold, which is a simple one, records none
    assert CliRunner().invoke(main, ["state", "verify", *options]).output.startswith(f"ok  {setup.raw}")
    flip(next((setup.stored / "changelogs").iterdir()))
    verified = CliRunner().invoke(main, ["state", "verify", str(setup.raw), *options])
    assert verified.exit_code == 4
    assert verified.output.startswith(f"damaged  {setup.raw}")

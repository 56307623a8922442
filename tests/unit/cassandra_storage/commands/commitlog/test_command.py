"""cassandra-commitlog as a process: pipes, and memory."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

from click.testing import CliRunner

from cassandra_storage.commands.commitlog.cli import group
from cassandra_storage.commands.commitlog.mutations import MutationReader
from cassandra_storage.commands.commitlog.schemas import Schemas
from cassandra_storage.commands.commitlog.segments import find_segments
from cassandra_storage.commands.commitlog.summary import SegmentSummary
from dev.local_stack.process.paths import project_root
from tests.support.cassandra_storage.segment_builder import NAME, SEGMENT_ID, segment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cassandra_storage.commitlog.fixtures import CdcRaw

COMMAND = (sys.executable, "-m", "cassandra_storage.commands.commitlog")
LARGE = 32 << 20


def test_a_closed_pipe_ends_it_silently(cdc_raw: CdcRaw) -> None:
    command = [*COMMAND, "dump", "--values", str(cdc_raw.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(100).startswith(b'{"segment":"CommitLog-')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == -signal.SIGPIPE


def test_a_table_that_is_not_there_is_named() -> None:
    command = [*COMMAND, "dump", "docs/example-segment", "--table", "vectors.collection"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=project_root())
    assert done.stdout == ""
    assert "no mutation of vectors.collection; cassandra-commitlog info lists the tables" in done.stderr


def test_a_key_that_is_not_there_is_named() -> None:
    done = CliRunner().invoke(group, ["dump", str(project_root() / "docs" / "example-segment"), "--key", "no-key"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no mutation with the key no-key; " in done.stderr


def test_help_needs_nothing_of_ours() -> None:
    """It is for a machine that has a copy of a segment and nothing else."""
    script = "import sys; from cassandra_storage.commands.commitlog.cli import main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"cassandra.cluster", "confluent_kafka", "pyspark", "pydantic"} & set(loaded)


def test_memory_does_not_grow_with_segments(tmp_path: Path) -> None:
    mutation = b"\x01" + bytes(4096)
    data = segment([[mutation] * (LARGE // 2 // len(mutation))] * 2)
    assert len(data) > 0.99 * LARGE
    (tmp_path / NAME).write_bytes(data)
    (tmp_path / NAME.replace(str(SEGMENT_ID), str(SEGMENT_ID + 1))).write_bytes(bytes(LARGE))
    entries = 0
    tracemalloc.start()
    try:
        reader = MutationReader(Schemas())
        for file in find_segments([tmp_path]):
            facts = SegmentSummary()
            for event in reader.events(reader.walk(file)):
                facts.add(event)
            entries += facts.entries
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert entries == 2 * (LARGE // 2 // len(mutation))
    assert peak < 4 << 20

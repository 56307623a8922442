"""Dead letters on a real broker: sent in the chunk's transaction, listed, sent again, discarded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import Code
from cdc_common.messages.errors import MessageError
from cdc_common.messages.raw import decode
from materializer.cli import main
from materializer.fold import row_updates
from materializer.fold.chunk_fold import ChunkFold
from materializer.output.dead_letters import CODE, HEADERS, OFFSET, PARTITION, TOPIC
from materializer.processing.fold_report import fold_part
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import TableJob, job_settings
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cdc_common.messages.raw import RawMessage
    from dev.local_stack.servers.kafka import KafkaBroker
    from materializer.records import RawRecord

pytestmark = pytest.mark.servers
JUNK = raw_record(int_bytes(1), "heartbeat", None)._replace(value=b"junk")


@pytest.fixture
def job(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> TableJob:
    return TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path))


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    started = Registry(tmp_path / "registry.db").start()
    yield started
    started.stop()


def row(number: int, *, key: int = 1) -> RawRecord:
    written = Row((int_bytes(5),), {"a": Cell(number, b"%d" % number)}, LivenessInfo(number))
    return raw_record(int_bytes(key), "row", written, offset=number)


def command(job: TableJob, *arguments: str) -> list[str]:
    """The lines that `cassandra-materializer dead-letters …` prints."""
    kafka = job.settings.kafka
    flags = [
        "--set",
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        "--set",
        f"kafka.topic_prefix={kafka.topic_prefix}",
    ]
    done = CliRunner().invoke(main, ["dead-letters", *arguments, *flags], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def incomplete(job: TableJob) -> list[tuple[int, bool]]:
    """The partition and the flag of each change."""
    return [(change["after"]["k"], change["source"]["incomplete"]) for change in job.changes()]


def test_a_foreign_message_is_put_aside_and_discarded(job: TableJob, registry: Registry) -> None:
    assert command(job, "ls") == []
    job.send(row(1), JUNK, row(2), row(3, key=2))
    result = job.run()
    assert result.error is None
    assert result.report is not None
    assert (result.report.messages, result.report.changes, fold_part(result.report).dead_letters) == (4, 3, 1)
    (letter,) = job.dead_letters()
    headers: dict[str, Any] = dict(letter.headers() or ())
    assert (letter.key(), letter.value(), tuple(headers)) == (*JUNK[:2], HEADERS)
    assert [headers[name].decode() for name in (CODE, TOPIC, PARTITION, OFFSET)] == [
        Code.DEAD_LETTERED.text,
        job.raw.topic,
        "0",
        "1",
    ]
    assert incomplete(job) == [(1, True), (1, True), (2, False)]
    (line,) = command(job, "ls", "shop.orders")
    assert "junk" not in line
    assert "still" not in command(job, "replay")[0]
    (discarded,) = command(job, "discard", line.split()[0], "--set", f"registry.url={registry.url}")
    assert discarded.endswith("discarded")
    job.send(row(4))
    job.run()
    job.send(row(5))
    job.run()
    assert [flag for key, flag in incomplete(job) if key == 1] == [True, True, True, False]
    assert command(job, "ls") == []
    assert [letter.value() for letter in job.dead_letters()] == [JUNK.value, None]


def test_what_a_newer_build_reads_is_sent_again(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    late = row(2)

    def older(value: bytes) -> RawMessage:
        if value == late.value:
            raise MessageError("of a kind that this build does not know")
        return decode(value)

    with monkeypatch.context() as build:
        build.setattr(row_updates, "decode", older)
        build.setattr(ChunkFold, "_may_be_native", False)  # it has a decoder of its own
        job.send(row(1), late, row(3))
        assert job.run().error is None
        (line,) = command(job, "replay")
        assert line.endswith("of a kind that this build does not know")
    assert [change["after"]["a"] for change in job.changes()] == ["1", "3"]
    (line,) = command(job, "replay")
    assert line.endswith("sent again")
    job.run()
    job.send(row(4))
    job.run()
    changes = job.changes()
    assert [change["after"]["a"] for change in changes] == ["1", "3", "4"]  # 2 was overwritten by 3 before it came
    assert [change["source"]["incomplete"] for change in changes] == [True, True, False]
    assert command(job, "ls") == []


def test_above_the_limit_nothing_of_the_chunk_is_there(job: TableJob) -> None:
    limited = job.with_settings(max_dead_letters=0)
    job.send(row(1), JUNK)
    error = limited.run().error
    assert error is not None
    assert error.code is Code.TOO_MANY_DEAD_LETTERS
    assert job.changes() == []
    assert job.run().error is None
    assert incomplete(job) == [(1, True)]

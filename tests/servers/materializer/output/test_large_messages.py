"""Changes that are larger than their topic takes, on a real broker: each choice of materializer.on_large_message."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

import pytest
from cassandra.metadata import Murmur3Token
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from materializer.output.large_messages import LargeMessages
from stream_runtime.kafka import Topics
from tests.support.materializer.raw_builder import int_bytes, raw_record
from tests.support.materializer.table_job import TableJob, job_settings

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from materializer.records import RawRecord
    from stream_runtime.records import Message

pytestmark = pytest.mark.servers
LIMIT = 20_000
_LETTERS = random.Random(1)


@pytest.fixture
def job(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> TableJob:
    """Its change topic takes messages up to LIMIT."""
    made = TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path))
    changes = NewTopic(f"{topic_prefix}.shop.orders", 3, 1, config={"max.message.bytes": str(LIMIT)})
    client = admin(made)
    client.create_topics([changes])[changes.topic].result()
    return made


def admin(job: TableJob) -> AdminClient:
    return AdminClient({"bootstrap.servers": job.settings.kafka.bootstrap_servers})


def set_limit(job: TableJob, size: int) -> None:
    change = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    topic = f"{job.settings.kafka.topic_prefix}.shop.orders"
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    client = admin(job)
    client.incremental_alter_configs([resource])[resource].result()


def random_text(size: int) -> str:
    """Text that does not compress."""
    return "".join(_LETTERS.choices(string.ascii_letters + string.digits + string.punctuation, k=size))


def row(number: int, text: str) -> RawRecord:
    written = Row((int_bytes(5),), {"a": Cell(number, text.encode())}, LivenessInfo(number))
    return raw_record(int_bytes(1), "row", written, offset=number)


def stopped(job: TableJob) -> CdcError:
    error = job.run().error
    assert error is not None
    assert error.code is Code.MESSAGE_TOO_LARGE
    return error


def sizes(job: TableJob) -> list[tuple[int | None, int]]:
    """The lengths of the column before and after, of each change."""
    return [(change["before"] and len(change["before"]["a"]), len(change["after"]["a"])) for change in job.changes()]


def test_it_stops_until_the_topic_takes_it(job: TableJob) -> None:
    text = random_text(12_000)
    job.send(row(1, text), row(2, random_text(12_000)))
    error = stopped(job)
    assert text[:20] not in str(error)
    assert str(Murmur3Token.hash_fn(int_bytes(1))) in error.problem
    assert "written at 2 µs" in error.problem
    assert job.changes() == []
    set_limit(job, 100_000)
    assert job.run().error is None
    assert sizes(job) == [(None, 12_000), (12_000, 12_000)]


def test_what_is_small_enough_compressed_goes_out(job: TableJob) -> None:
    job.send(row(1, "x" * 60_000), row(2, "y" * 60_000))
    assert job.run().error is None
    assert sizes(job) == [(None, 60_000), (60_000, 60_000)]


def test_small_messages_are_never_too_large_together(job: TableJob) -> None:
    job.send(*(row(number, random_text(900)) for number in range(1, 200)))
    assert job.run().error is None
    assert len(job.changes()) == 199


def test_the_row_before_is_left_out_and_the_message_says_so(job: TableJob) -> None:
    job = job.with_settings(on_large_message="without_before")
    job.send(row(1, random_text(12_000)), row(2, random_text(12_000)), row(3, "small"))
    assert job.run().error is None
    changes = job.changes()
    assert [change["source"]["left_out"] for change in changes] == [[], ["before"], []]
    assert [(change["op"], change["before"] is None) for change in changes] == [("c", True), ("u", True), ("u", False)]
    assert [change["source"]["row_sequence"] for change in changes] == [1, 2, 3]
    job.send(row(4, random_text(30_000)))
    assert "written at 4 µs" in stopped(job).problem  # it is too large by itself


def test_it_goes_to_the_dead_letters_instead(job: TableJob) -> None:
    job = job.with_settings(on_large_message="dead_letter")
    job.send(row(1, random_text(12_000)), row(2, random_text(12_000)), row(3, "small"))
    assert job.run().error is None
    assert sizes(job) == [(None, 12_000), (12_000, 5)]
    assert [change["source"]["row_sequence"] for change in job.changes()] == [1, 3]
    (letter,) = job.dead_letters()
    headers = dict(letter.headers() or ())
    assert headers["cdc.code"] == Code.MESSAGE_TOO_LARGE.text.encode()
    assert len(letter.value() or b"") > 24_000


def test_a_message_that_the_brokers_refuse_is_named(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(_limits: LargeMessages, _message: Message) -> bool:
        return True

    job.send(row(1, random_text(12_000)), row(2, random_text(12_000)))
    with monkeypatch.context() as lowered:
        lowered.setattr(LargeMessages, "fits", take)
        error = stopped(job)
    assert f"{job.settings.kafka.topic_prefix}.shop.orders" in error.problem
    assert job.changes() == []


def test_a_longer_transaction_than_the_brokers_allow_is_refused(job: TableJob) -> None:
    topics = Topics(job.settings.kafka)
    topics.check_transaction_timeout(900)
    with pytest.raises(CdcError, match=r"\(900 s\)") as caught:
        topics.check_transaction_timeout(901)
    assert caught.value.code is Code.TRANSACTION_TIMEOUT
    job.send(row(1, "small"))
    error = job.with_settings(transaction_timeout_seconds=901).run().error
    assert error is not None
    assert error.code is Code.TRANSACTION_TIMEOUT

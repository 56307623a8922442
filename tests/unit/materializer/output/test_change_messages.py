from __future__ import annotations

from collections import Counter

import pytest
from structlog.testing import capture_logs

from cdc_common.errors.codes import CdcError
from cdc_common.messages.changes import RowChange, Source
from cdc_common.messages.envelope import EncodedMessage
from cdc_common.settings import KafkaSettings
from materializer.output.change_messages import ChangeWriter, Target
from materializer.output.dead_letters import DeadLetterWriter
from materializer.output.large_messages import LargeMessages
from stream_runtime.records import Message
from tests.support.stream_runtime.sent import messages_of

CHANGE = RowChange(b"p", (), "d", {}, None, 1, Source(0, bytes(16), "CommitLog-7-1.log", 5))


class FakeEncoder:
    """A change whose partition key is `odd` has no form."""

    def leaves_out(self, change: RowChange) -> bool:
        return change.clustering is None

    def encode(self, change: RowChange, *, without_before: bool = False) -> EncodedMessage | None:
        value = b"short" if without_before else b"value"
        return None if change.partition_key == b"odd" else EncodedMessage(b"key", value, unreadable=2)


def test_a_change_whose_key_has_no_form_is_left_out_and_said() -> None:
    large = LargeMessages("stop", 1000, DeadLetterWriter(KafkaSettings(), "cdc.raw.shop.orders"))
    writer = ChangeWriter({b"": Target("t", 1, FakeEncoder())}, tombstones=True, large=large)
    with capture_logs() as logs:
        messages = messages_of(writer.messages([CHANGE, CHANGE._replace(partition_key=b"odd"), CHANGE]))
    assert [(message.key, message.value) for message in messages] == [(b"key", b"value"), (b"key", None)] * 2
    (line,) = logs
    assert (line["code"], line["file"], line["position"]) == ("CDC-067", "CommitLog-7-1.log", 5)
    assert "odd" not in str(line)


def test_values_that_a_message_cannot_represent_are_counted() -> None:
    large = LargeMessages("stop", 1000, DeadLetterWriter(KafkaSettings(), "cdc.raw.shop.orders"))
    writer, counts = ChangeWriter({b"": Target("t", 1, FakeEncoder())}, tombstones=True, large=large), Counter[str]()
    list(writer.messages([CHANGE, CHANGE], null_values=counts))
    assert counts == Counter(unreadable=4)


def test_a_message_that_the_producers_queue_never_takes_is_too_large_whatever_the_topic_allows() -> None:
    """The producer would wait forever: no message that is sent makes enough room."""
    writer = DeadLetterWriter(KafkaSettings(), "cdc.raw.shop.orders")
    large = LargeMessages("stop", 1 << 30, writer)
    fitting, never = Message("t", 0, b"k", bytes(127_000_000)), Message("t", 0, b"k", bytes(135_000_000))
    assert large.fits(fitting)
    assert not large.fits(never)
    with pytest.raises(CdcError, match="without_before"):
        large.replace(never, CHANGE, lambda: b"")
    assert LargeMessages("without_before", 1 << 30, writer).replace(never, CHANGE, lambda: b"short").value == b"short"

"""Dead letters of messages without a key: the same bytes may be in several raw partitions, each of which has a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from cdc_common.errors.codes import CdcError
from cdc_common.messages.raw import decode
from materializer.commands import dead_letters as commands
from materializer.errors import no_raw_topic
from materializer.fold.gaps import DeadLetter, dead_letter_id
from materializer.output import dead_letters
from materializer.output.dead_letters import DeadLetterWriter, unresolved_dead_letters
from materializer.planning.table_schemas import TableSchemas
from materializer.records import RawPartition
from materializer.settings import Settings
from stream_runtime.kafka import KafkaMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_runtime.records import Message

TOPIC = "cdc.raw.shop.orders"
JUNK = b"a test of another program"
ID = dead_letter_id(b"", JUNK)


class Scene:
    """A dead-letter topic, and what the commands send."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.topic: list[KafkaMessage] = []
        self.sent: list[Message] = []
        self.settings = Settings()
        reader = MagicMock()
        reader.return_value.read_messages = lambda: self.topic
        patch.setattr(dead_letters, "TopicReader", reader)
        patch.setattr(dead_letters, "Topics", MagicMock())
        patch.setattr(commands, "find_raw_topics", lambda _kafka, _table: [TOPIC])
        patch.setattr(commands, "read_positions", lambda _settings, asked: dict.fromkeys(asked))
        registry = MagicMock()
        registry.return_value.__enter__.return_value.register.return_value = 1
        patch.setattr(commands, "RegistryClient", registry)
        patch.setattr(commands, "send_all", self._send)

    def _send(self, _kafka: object, messages: Iterable[Message]) -> None:
        self.sent += messages

    def letter(self, partition: int, key: bytes = b"", value: bytes | None = JUNK) -> None:
        """Send as a raw partition's task does: a dead letter or, without a value, that it is resolved."""
        sent = DeadLetter(dead_letter_id(key, JUNK), key, value, 5, 0, "CDC-080", "it is junk")
        writer = DeadLetterWriter(self.settings.kafka, TOPIC)
        for message in writer.messages(RawPartition(TOPIC, partition), [sent]):
            headers: Any = list(message.headers)
            self.topic.append(KafkaMessage(message.key, message.value, headers))

    def unresolved(self) -> list[int]:
        return [letter.where.partition for letter in unresolved_dead_letters(self.settings.kafka, TOPIC)]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_each_raw_partition_resolves_its_own_copy(scene: Scene) -> None:
    for partition in (0, 2):
        scene.letter(partition)
    assert scene.unresolved() == [0, 2]
    scene.letter(2, value=None)
    assert scene.unresolved() == [0]


def test_a_discard_goes_to_every_raw_partition_that_has_a_copy(scene: Scene) -> None:
    for partition in (0, 2):
        scene.letter(partition)
    commands.discard_dead_letter(scene.settings, ID.hex())
    assert [(message.partition, message.key) for message in scene.sent] == [(0, b""), (2, b"")]
    assert {decode(message.value or b"").update for message in scene.sent} == {ID}


def test_a_copy_with_a_key_is_resolved_wherever_a_reshard_has_moved_it(scene: Scene) -> None:
    scene.letter(0, key=b"k")
    scene.letter(5, key=b"k", value=None)
    assert scene.unresolved() == []


def test_lists_end_with_a_number(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "read_table_schemas", lambda _: TableSchemas("cdc"))
    monkeypatch.setattr(commands, "Topics", MagicMock())
    commands.list_dead_letters(scene.settings, None)
    scene.letter(0)
    commands.list_dead_letters(scene.settings, None)
    commands.replay_dead_letters(scene.settings, None)
    printed = capsys.readouterr()
    assert printed.err.splitlines() == ["0 messages dead-lettered", "1 messages dead-lettered", "0 of 1 messages sent"]
    assert [": not sent: " in line for line in printed.out.splitlines()] == [False, True]


@pytest.mark.parametrize(
    ("name", "fix"), [("cdc.raw.shop.order", "Did you mean shop.orders"), ("cdc.raw.x", r"Correct .* \(cdc\)")]
)
def test_a_table_without_a_raw_topic(name: str, fix: str) -> None:
    with pytest.raises(CdcError, match=fix) as raised:
        raise no_raw_topic(name, [TOPIC, "cdc.shop.order", "other.raw.shop.order"])
    assert raised.value.problem == f"There is no raw topic {name}."

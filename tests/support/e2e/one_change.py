"""Waiting for a first change to come out, or for a refusal, by a consumer with a login or a certificate of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer

from dev.local_stack.process.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dev.local_stack.servers.programs import Program

SECONDS = 120.0


def wait_for_a_change(
    topic: str, client: Mapping[str, object], materializer: Program, *, group: str = "reader", with_text: str = ""
) -> None:
    """Returns with the first message of the topic that has the text in its value; fails when the materializer ends or
    nothing comes. Avro writes a text as its UTF-8.
    """
    wait_for_text(topic, client, with_text, group=group, check=materializer.check)


def wait_for_text(
    topic: str,
    client: Mapping[str, object],
    text: str,
    *,
    group: str = "reader",
    check: Callable[[], None] = lambda: None,
) -> None:
    """Return with the first message of the topic that has the text in its value. check: raises if none can come."""
    reader = Consumer({**client, "group.id": group, "auto.offset.reset": "earliest"})
    reader.subscribe([topic])

    def has_come() -> bool:
        check()
        message = reader.poll(0.5)
        if message is None or message.error() is not None:
            return False
        return text.encode() in (message.value() or b"")

    try:
        wait_until(has_come, f"a change in {topic}", SECONDS)
    finally:
        reader.close()


def wait_for_an_error(topic: str, client: Mapping[str, object]) -> int:
    """The code of the error that the reader gets for the topic; fails when it gets a message, or nothing."""
    reader = Consumer({**client, "group.id": "reader", "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    found: list[int] = []

    def has_come() -> bool:
        message = reader.poll(0.5)
        if message is None:
            return False
        error = message.error()
        assert error is not None, f"the reader may read {topic}"
        found.append(error.code())
        return True

    try:
        wait_until(has_come, "the broker to refuse", SECONDS)
    finally:
        reader.close()
    return found[0]

"""Waiting for a first change to come out, by a consumer with a login or a certificate of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer

from local_stack.process.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local_stack.servers.programs import Program

SECONDS = 120.0


def wait_for_a_change(topic: str, client: Mapping[str, object], materializer: Program) -> None:
    """Returns with the first message of the topic; fails when the materializer ends or nothing comes."""
    reader = Consumer({**client, "group.id": "reader", "auto.offset.reset": "earliest"})
    reader.subscribe([topic])

    def has_come() -> bool:
        materializer.check()
        message = reader.poll(0.5)
        return message is not None and message.error() is None

    try:
        wait_until(has_come, "the change to come out", SECONDS)
    finally:
        reader.close()

"""Messages that are still to be sent to Kafka, at least once: each is stored in its registration's transaction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlalchemy import delete, func, select

from schematizer.model.record_tables import OutboxRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from schematizer.model.database import Database

_AT_ONCE = 500


class OutboxMessage(NamedTuple):
    """A message that waits to be sent to Kafka."""

    # Its id, which gives the order.
    id: int
    # Its key.
    key: str
    # Its value, as JSON.
    value: str


class Sender(Protocol):
    def send(self, messages: Sequence[OutboxMessage]) -> list[int]:
        """The ids of those that are sent for good; an exception if there are none."""
        ...


class Outbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self) -> int:
        """Return how many messages wait."""
        query = select(func.count()).select_from(OutboxRow)
        return self._database.read_session(lambda session: session.execute(query).scalar_one())

    def send(self, sender: Sender) -> int:
        """Sends what waits, the oldest first; how many went. No transaction is open while Kafka answers: a program that
        dies in between, or another instance, sends some twice.
        """
        total = 0
        while messages := self._database.read_session(_oldest):
            sent = sender.send(messages)
            self._database.write_session(partial(_remove, sent))
            total += len(sent)
            if len(sent) < len(messages):
                break
        return total


def _remove(sent: list[int], session: Session) -> None:
    session.execute(delete(OutboxRow).where(OutboxRow.id.in_(sent)))


def _oldest(session: Session) -> list[OutboxMessage]:
    rows = session.scalars(select(OutboxRow).order_by(OutboxRow.id).limit(_AT_ONCE))
    return [OutboxMessage(row.id, row.key, row.value) for row in rows]

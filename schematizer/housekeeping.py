"""The service's work besides requests: it notes which schemas were used, and sends registrations to Kafka."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Self

import structlog
from sqlalchemy.exc import SQLAlchemyError

from schematizer.kafka import SendError
from schematizer.model.database import reason_of

if TYPE_CHECKING:
    from types import TracebackType

    from schematizer.catalogue.outbox import Outbox
    from schematizer.catalogue.usage import Usage
    from schematizer.kafka import RegistrationTopic

_SEND_EVERY = 1.0  # seconds
_FLUSH_EVERY = 60.0
_LONGEST_WAIT = 60.0
_STOP_SECONDS = 2.0


class Housekeeping:
    """A thread, while it is entered. What fails is logged and tried again."""

    def __init__(self, usage: Usage, outbox: Outbox, topic: RegistrationTopic | None) -> None:
        """`topic`: None if nothing is to be sent."""
        self._usage = usage
        self._outbox = outbox
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._log = structlog.get_logger(__name__)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():  # it waits for Kafka: what it sends stays in the database until Kafka has it
            self._log.info("registrations that Kafka has not acknowledged are sent after the next start")
        self._flush()
        if self._topic is not None and not self._thread.is_alive():
            self._topic.close()

    def _run(self) -> None:
        flushed_at, wait = monotonic(), _SEND_EVERY
        while not self._stop.wait(wait):
            if monotonic() - flushed_at >= _FLUSH_EVERY:
                self._flush()
                flushed_at = monotonic()
            wait = _SEND_EVERY if self._send() else min(wait * 2, _LONGEST_WAIT)

    def _flush(self) -> None:
        try:
            self._usage.flush()
        except SQLAlchemyError as error:
            self._log.warning("cannot note which schemas are used", reason=reason_of(error))

    def _send(self) -> bool:
        """Whether it went well."""
        if self._topic is None:
            return True
        try:
            self._outbox.send(self._topic)
        except SendError as error:
            self._log.warning("registrations wait for Kafka", reason=str(error))
        except SQLAlchemyError as error:
            self._log.warning("registrations wait for the database", reason=reason_of(error))
        else:
            return True
        return False

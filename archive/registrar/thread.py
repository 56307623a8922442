"""The registrar in a thread of the driver: it reads new file events and commits them, again and again."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Self

import structlog

from archive.events.ledger import Ledger
from archive.files import open_store
from archive.registrar.catalogs import open_tables
from archive.registrar.registrar import Registrar
from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of
from stream_runtime.kafka import driver_errors

if TYPE_CHECKING:
    from types import TracebackType

    from archive.settings import ArchiveSettings
    from cdc_common.settings import KafkaSettings

_logger = structlog.get_logger(__name__)


class RegistrarThread:
    """Runs between `__enter__` and `__exit__`. A failure is logged and tried again."""

    def __init__(self, kafka: KafkaSettings, settings: ArchiveSettings) -> None:
        self.registrar: Registrar | None = None
        """The registrar, once Kafka and the catalog have answered."""
        self.failures = 0
        """How often a round has failed."""
        self._kafka = kafka
        self._settings = settings
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="registrar", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    @cached_property
    def _ledger(self) -> Ledger:
        """One client for all rounds, made in the first."""
        return Ledger(self._kafka, self._settings.events_topic)

    def run_once(self) -> None:
        """Commit the events that are new. CdcError of Kafka, or any exception of the catalog."""
        if self.registrar is None:
            store = open_store(self._settings.location)
            topic_id = self._ledger.topic_id()
            tables = open_tables(self._settings, store, topic_id)
            self.registrar = Registrar(self._settings.catalog_name, tables, store, topic_id)
        with driver_errors("read the file events"):
            self.registrar.take(self._ledger.read(self.registrar.next))
        self.registrar.commit()

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self.run_once()
            except CdcError as error:
                self._failed(code=error.code.text, problem=error.problem)
            except Exception as error:  # noqa: BLE001 - archiving goes on, and the next round tries again
                self._failed(trace=trace_of(error))
            self._end.wait(self._settings.register_seconds)

    def _failed(self, **fields: str) -> None:
        self.failures += 1
        _logger.warning("file events not registered", **fields)

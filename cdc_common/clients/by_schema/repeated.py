"""Periodic requests of a client to the service, in a thread of their own. No caller waits for them."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from cdc_common.clients.registry.errors import RegistryRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger(__name__)


class Repeated:
    """Calls `work` at once and then every `seconds`, until `stop`. That the service is away is a warning, once; any
    other error is kept for `check`, until `work` succeeds again.
    """

    def __init__(self, name: str, work: Callable[[], None], seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._problem: Exception | None = None
        self._is_away = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what `work` has failed with."""
        problem = self._problem
        if problem is not None:
            raise problem.with_traceback(None)

    def stop(self) -> None:
        """Does not wait for a request that is under way."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._work()
                self._problem, self._is_away = None, False
            except Exception as error:  # noqa: BLE001 - check raises it
                if self._over.is_set():  # the caller may have closed what `work` uses
                    return
                if isinstance(error, RegistryRequestError) and error.is_retried:
                    if not self._is_away:
                        _logger.warning("%s: the registry is away: %s", self._thread.name, error)
                    self._is_away = True
                else:
                    self._problem = error
            self._over.wait(self._seconds)


class Announcement:
    """Tells the service that a client is alive. A refusal does not hinder the client: each is a warning, once."""

    def __init__(self) -> None:
        self._refusals: set[str] = set()

    def tell(self, register: Callable[[], object]) -> None:
        """Call `register`. RegistryRequestError if the service is away. Any other refusal is logged once."""
        try:
            register()
        except RegistryRequestError as error:
            if error.is_retried:
                raise
            if str(error) not in self._refusals:
                self._refusals.add(str(error))
                _logger.warning("not registered as a client: %s", error)

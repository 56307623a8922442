"""The right to apply the files of an environment: one holder at a time, for a time."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Self

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from types import TracebackType

    from cdc_common.clients.registry.schematizer import SchematizerClient

LEASE_SECONDS = 60
_PAUSE_SECONDS = 1.0
_FIX = (
    "Wait until the other apply has ended: --wait SECONDS does so. One that was killed keeps the lease until the time "
    "that is named."
)


class HeldLease:
    """A lease of the registry. A context manager: it is given back at the end."""

    def __init__(self, client: SchematizerClient, environment: str, wait_seconds: float = 0) -> None:
        """`wait_seconds`: time for which another holder is waited for. CdcError TOPICS_LEASED after it."""
        self._client = client
        self._environment = environment
        self._holder = f"{os.environ.get('USER') or os.getuid()}@{socket.gethostname()}, process {os.getpid()}"
        self._renewed_at = 0.0
        self.token = self._take(wait_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.release(self._environment, self.token)

    def keep(self) -> None:
        """Renew it if half of its time is over. CdcError TOPICS_LEASED if it is lost."""
        if time.monotonic() - self._renewed_at > LEASE_SECONDS / 2:
            self._ask(self.token)

    def _take(self, wait_seconds: float) -> int:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                return self._ask(None)
            except CdcError as error:
                if error.code is not Code.TOPICS_LEASED or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _ask(self, token: int | None) -> int:
        asked_at = time.monotonic()
        try:
            lease = self._client.lease(self._environment, self._holder, LEASE_SECONDS, token=token)
        except RegistryRequestError as error:
            raise leased(error) from error
        self._renewed_at = asked_at
        return lease.token


def leased(error: RegistryRequestError) -> CdcError:
    """Return TOPICS_LEASED for an error that says that another holder has the lease; otherwise the error itself."""
    return CdcError(Code.TOPICS_LEASED, error.problem, _FIX) if error.is_conflict else error

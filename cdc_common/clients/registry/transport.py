"""Requests to a schema registry: the one place that sends, retries, and tells what went wrong."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import httpx

from cdc_common.clients.registry.connection import registry_login, registry_tls
from cdc_common.clients.registry.errors import RegistryRequestError, no_answer, not_understood, refusal
from cdc_common.settings.describe import mask_url

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from cdc_common.settings import RegistrySettings

ATTEMPTS = 3
ANSWER_SECONDS = 10.0
"""The longest time of one attempt."""
_FIRST_WAIT = 0.2  # seconds
_LONGEST_WAIT = 10.0  # seconds


class Transport:
    """Every request of both APIs is idempotent. One that may succeed later is tried `attempts` times, with pauses of
    random length that grow. RegistryRequestError. Several threads may use one.
    """

    def __init__(  # noqa: PLR0913 - settings by keyword
        self,
        url: str,
        *,
        login: tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = ANSWER_SECONDS,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.url = mask_url(url)
        self._attempts = attempts
        self._client = httpx.Client(
            base_url=url, auth=login, headers=dict(headers or {}), timeout=timeout, verify=tls or True
        )

    @classmethod
    def of_settings(
        cls, settings: RegistrySettings, *, headers: Mapping[str, str] | None = None, timeout: float = ANSWER_SECONDS
    ) -> Self:
        """CdcError CONFIG_INVALID if a file of the settings cannot be used."""
        login, tls = registry_login(settings), registry_tls(settings)
        return cls(settings.url, login=login, headers=headers, tls=tls, timeout=timeout)

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
    ) -> bytes:
        """Send a request, with `body` as JSON. Returns the body of the answer. Values of None are left out of the
        query.
        """
        url = "".join(f"/{quote(part, safe='')}" for part in path)
        given = {name: value for name, value in (query or {}).items() if value is not None}
        for attempt in range(1, self._attempts):
            try:
                return self._send(method, url, given, body)
            except RegistryRequestError as error:
                if not error.is_retried:
                    raise
            time.sleep(random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)))  # noqa: S311 - no secret
        return self._send(method, url, given, body)

    def not_understood(self, method: str, path: tuple[str, ...], reason: str) -> RegistryRequestError:
        return not_understood(self.url, f"{method} /{'/'.join(path)}", reason)

    def _send(self, method: str, url: str, query: Mapping[str, Any], body: object) -> bytes:
        request = f"{method} {url}"
        try:
            response = self._client.request(method, url, params=dict(query), json=body)
        except httpx.HTTPError as error:
            raise no_answer(self.url, request, str(error) or type(error).__name__) from error
        if response.is_success:
            return response.content
        try:
            answer = response.json()
        except ValueError:
            answer = None
        raise refusal(self.url, request, response.status_code, answer)

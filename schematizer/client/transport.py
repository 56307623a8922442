"""Requests with retries, and answers as values of schematizer.views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
_RETRIED = (408, 429, 500, 502, 503, 504)
_LONGEST_WAIT = 10  # seconds
_PATH = "/api/v1"


class SchematizerError(Exception):
    """`status`: of HTTP, None if there was no answer. `error`: the service's word for it, as `not-found`."""

    def __init__(self, status: int | None, error: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error = error

    @property
    def is_retried(self) -> bool:
        """Whether the same request may succeed later: the service was away, busy or broken."""
        return self.status is None or self.status in _RETRIED


class Transport:
    """Every request is idempotent, so that each is tried `attempts` times, with growing pauses, if it may succeed."""

    def __init__(self, client: httpx.Client, attempts: int) -> None:
        self._client = client
        self._retrying = Retrying(
            stop=stop_after_attempt(attempts),
            wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_WAIT),
            retry=retry_if_exception(lambda error: isinstance(error, SchematizerError) and error.is_retried),
            reraise=True,
        )

    def close(self) -> None:
        self._client.close()

    def get(self, answer: TypeAdapter[T], *path: str, **query: Any) -> T:  # noqa: ANN401 - what the query takes
        return self._ask(answer, "GET", path, query, None)

    def send(self, answer: TypeAdapter[T], method: str, path: tuple[str, ...], body: object) -> T:
        """`body`: JSON."""
        return self._ask(answer, method, path, {}, body)

    def _ask(
        self, answer: TypeAdapter[T], method: str, path: tuple[str, ...], query: Mapping[str, Any], body: object
    ) -> T:
        given = {name: value for name, value in query.items() if value is not None}
        url = _PATH + "".join(f"/{quote(part, safe='')}" for part in path)
        content = self._retrying(self._once, method, url, given, body)
        try:
            return answer.validate_json(content)
        except ValidationError as error:
            raise SchematizerError(None, "not-understood", f"{url} answers something else: {error}.") from error

    def _once(self, method: str, url: str, query: Mapping[str, Any], body: object) -> bytes:
        try:
            response = self._client.request(method, url, params=dict(query), json=body)
        except httpx.HTTPError as error:
            raise SchematizerError(None, "unreachable", f"{method} {url}: {error!r}.") from error
        if response.is_success:
            return response.content
        raise _refusal(method, url, response)


def _refusal(method: str, url: str, response: httpx.Response) -> SchematizerError:
    try:
        content = response.json()
        word, message = str(content["error"]), f"{content['message']} {content['fix']}"
    except (ValueError, KeyError, TypeError):
        word, message = "http", f"HTTP {response.status_code}."
    return SchematizerError(response.status_code, word, f"{method} {url}: {message}")

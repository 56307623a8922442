"""Answers of a program on its operations port."""

from __future__ import annotations

from http.client import HTTPConnection


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of http://127.0.0.1:<port><path>."""
    return _ask(port, "GET", path, None, {})


def post(port: int, path: str, body: str, content_type: str = "application/json") -> tuple[int, str]:
    return _ask(port, "POST", path, body, {"Content-Type": content_type})


def _ask(port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()

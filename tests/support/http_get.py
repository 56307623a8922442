"""What a program serves on its operations port."""

from __future__ import annotations

from http.client import HTTPConnection


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of http://127.0.0.1:<port><path>."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()

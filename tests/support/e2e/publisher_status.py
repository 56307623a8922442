"""The status that a publisher of a running stack serves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.http_get import get

if TYPE_CHECKING:
    from dev.local_stack.servers.stack import Stack


def read_status(stack: Stack, number: int = 0) -> dict[str, Any]:
    """A publisher's status."""
    _, body = get(int(str(stack.publishers[number].settings["publisher.operations_port"])), "/status")
    status: dict[str, Any] = json.loads(body)
    return status

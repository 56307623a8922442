"""The answer of /status as text."""

from __future__ import annotations

from typing import Any

from joinery.faults import JOIN_FAULTS
from stream_runtime.driver.status import stop_text


def text(status: dict[str, Any]) -> str:
    """Each stopped partition with its fix, and a summary. KeyError for the answer of another version."""
    stopped = status["stopped"]
    lines = [
        *(stop_text(JOIN_FAULTS.words, stop) for stop in stopped),
        (
            f"{status['partitions'] - len(stopped):,} of {status['partitions']:,} partitions work; {len(stopped):,} "
            f"are stopped; {status['messages']:,} messages since the start; lag {status['lag']:,} messages"
        ),
    ]
    if status["waiting"]:
        lines.append(f"waiting: {status['waiting']}")
    return "\n".join(lines)

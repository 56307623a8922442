"""3.11 hands a full segment over when all that it holds is flushed: the node's own nodetool flushes it now and then.

From 4.0 on a segment is handed over when it is made, and flushing helps nothing.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_SECONDS = 300.0


def needs_flush(release: str) -> bool:
    """Of the version that a node tells."""
    return release.startswith("3.")


def flush(nodetool: Sequence[str]) -> None:
    """Flush every table of the node; CdcError NODETOOL_FAILED."""
    command = [*nodetool, "flush"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
        said = "" if done.returncode == 0 else (done.stderr or done.stdout).strip()
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        said, failed = str(error), True
    if failed:
        raise CdcError(
            Code.NODETOOL_FAILED,
            f"{' '.join(command)} has failed: {said[:500]}.",
            "Set filler.nodetool to the node's own nodetool with what it needs to reach the node (-h, -p, -u, -pwf).",
        )

"""3.11 hands a full segment over when all that it holds is flushed: the node's own nodetool flushes it now and then.

From 4.0 on a segment is handed over when it is made, and flushing helps nothing.
"""

from __future__ import annotations

import subprocess
from time import monotonic
from typing import TYPE_CHECKING

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_SECONDS = 300.0


def needs_flush(release: str) -> bool:
    """Of the version that a node tells."""
    return release.startswith("3.")


class Flusher:
    """Flushes every table of the node, one flush at a time, while the filler's periods go on."""

    def __init__(self, nodetool: Sequence[str]) -> None:
        self._command = [*nodetool, "flush"]
        self._running: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self.done = 0

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def start(self) -> None:
        """CdcError NODETOOL_FAILED."""
        try:
            self._running = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
        except OSError as error:
            raise self._failed(str(error)) from error
        self._started_at = monotonic()

    def look(self) -> None:
        """See whether it has ended; CdcError NODETOOL_FAILED if not well, or not in time."""
        if self._running is None:
            return
        if self._running.poll() is None:
            if monotonic() - self._started_at > TIMEOUT_SECONDS:
                self.stop()
                raise self._failed(f"it has not ended after {TIMEOUT_SECONDS:.0f} s")
            return
        process, self._running = self._running, None
        said, _ = process.communicate()
        if process.returncode:
            raise self._failed(said.strip()[:500])
        self.done += 1

    def stop(self) -> None:
        """Leave no child behind."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def _failed(self, said: str) -> CdcError:
        return CdcError(
            Code.NODETOOL_FAILED,
            f"{' '.join(self._command)} has failed: {said}.",
            "Set filler.nodetool to the node's own nodetool with what it needs to reach the node (-h, -p, -u, -pwf).",
        )

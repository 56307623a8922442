"""Cassandra 3.11 releases a full segment to CDC once its writes are flushed: the node's own nodetool flushes them.

Cassandra 4.0 and later release a segment when they create it: they need no flush.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_password_options

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_SECONDS = 300.0


def needs_flush(release: str) -> bool:
    """Return whether a node of this version releases segments only after a flush."""
    return release.startswith("3.")


class Flusher:
    """Flushes every table of the node, one flush at a time, in the background of the filler's periods."""

    def __init__(self, nodetool: Sequence[str]) -> None:
        self._command = [*nodetool, "flush"]
        self._running: subprocess.Popen[str] | None = None
        self._started_at = 0.0
        self.completed = 0

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def start(self) -> None:
        """Start a flush. CdcError NODETOOL_FAILED."""
        try:
            self._running = subprocess.Popen(
                self._command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise self._failed(str(error)) from error
        self._started_at = monotonic()

    def poll(self) -> None:
        """Check a running flush; CdcError NODETOOL_FAILED if it has failed or takes too long."""
        if self._running is None:
            return
        if self._running.poll() is None:
            if monotonic() - self._started_at > TIMEOUT_SECONDS:
                self.stop()
                raise self._failed(f"it is still running after {TIMEOUT_SECONDS:.0f} s")
            return
        process, self._running = self._running, None
        output, _ = process.communicate()
        if process.returncode:
            raise self._failed(output.strip()[:500])
        self.completed += 1

    def stop(self) -> None:
        """Kill a running flush with its process group: nodetool is a script, and its JVM holds the pipe too."""
        if self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.communicate()
            self._running = None

    def _failed(self, reason: str) -> CdcError:
        return CdcError(
            Code.NODETOOL_FAILED,
            f"{' '.join(mask_password_options(self._command))} failed: {reason}.",
            "Set filler.nodetool to the node's own nodetool with the options it needs to connect (-h, -p, -u, -pwf).",
        )

"""A flush that hangs is ended with all its processes: Cassandra's nodetool is a shell script that starts a JVM."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.processes import wait_until
from filler import flush
from filler.flush import Flusher

if TYPE_CHECKING:
    from pathlib import Path

HANGS = 20.0


def test_a_flush_that_hangs_does_not_hold_the_filler_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, ended = tmp_path / "started", tmp_path / "ended"
    flusher = Flusher(["sh", "-c", f"sh -c 'touch {started}; sleep {HANGS}; touch {ended}'; true"])
    flusher.start()
    wait_until(started.exists, "a flush", 5.0)
    monkeypatch.setattr(flush, "TIMEOUT_SECONDS", 0.0)
    before = monotonic()
    with pytest.raises(CdcError, match="still running") as caught:
        flusher.poll()
    assert caught.value.code is Code.NODETOOL_FAILED
    assert monotonic() - before < HANGS / 2
    assert not flusher.is_running
    assert not ended.exists()


def test_a_flush_that_fails_is_reported_with_its_output() -> None:
    flusher = Flusher(["sh", "-c", "echo no JMX; exit 1"])
    flusher.start()

    def has_failed() -> bool:
        try:
            flusher.poll()
        except CdcError as error:
            return "no JMX" in error.problem
        return False

    wait_until(has_failed, "the failure", 5.0)
    assert not flusher.is_running
    assert flusher.completed == 0


def test_a_flush_that_fails_does_not_tell_its_password() -> None:
    with pytest.raises(CdcError) as caught:
        Flusher(["/none/nodetool", "-pw", "geheim"]).start()
    assert "/none/nodetool -pw *** flush failed" in caught.value.problem
    assert "geheim" not in str(caught.value)

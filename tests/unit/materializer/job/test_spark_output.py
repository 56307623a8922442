"""What Spark's processes write to stderr becomes events; their own JSON lines pass."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

from materializer.job import spark_output
from materializer.job.spark_output import SparkOutput

if TYPE_CHECKING:
    import pytest

OWN = '{"event": "raw partition stopped", "level": "error"}'
TRACE = 'Traceback (most recent call last):\n  File "worker.py", line 1\nOSError: no room'


def test_only_json_and_events_come_out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with structlog.testing.capture_logs() as logged, os.fdopen(reading, "rb") as stream:
        output = SparkOutput(stream)
        with os.fdopen(writing, "wb", buffering=0) as jvm:
            jvm.write(b"WARNING: Using incubator modules: jdk.incubator.vector\n")
            jvm.write(f"{OWN}\n{TRACE}\n{OWN}\n\nhalf a ".encode())
            jvm.write(b"line\n\xff without an end")
        output.join(10)
    assert capsys.readouterr().err == f"{OWN}\n{OWN}\n"
    events = [entry["text"] for entry in logged if entry["event"] == "spark"]
    assert TRACE in events
    assert "WARNING" not in "".join(events)
    assert events[-1].endswith("without an end")
    monkeypatch.setattr(spark_output, "_outputs", [output])
    assert spark_output.last_error().endswith("without an end")

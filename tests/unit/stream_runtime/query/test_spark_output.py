"""Lines that Spark's processes write to stderr become events; their own JSON lines pass."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import structlog
from pyspark import SparkContext

from cdc_common.errors.codes import CdcError, Code
from materializer.settings import MaterializerSettings
from stream_runtime.query import spark_output
from stream_runtime.query.spark_output import SparkOutput
from stream_runtime.query.spark_session import open_session

if TYPE_CHECKING:
    from pathlib import Path

JAVA = """[ "$1" = -version ] && { echo 'openjdk version "17.0.1"' >&2; exit 0; }
echo "Error: Could not create the Java Virtual Machine: no memory" >&2
exit 1
"""
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
    assert spark_output.last_error() == "OSError: no room"


REFUSED = """2026-11-25T20:50:15.123Z ERROR Utils: Failed to create directory /opt/pyspark/work
java.nio.file.AccessDeniedException: /opt/pyspark/work
\tat java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:90)
\tat java.base/java.nio.file.Files.createDirectories(Files.java:781)
\t... 12 more
"""


def test_the_last_error_is_an_error_and_no_line_of_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        output = SparkOutput(stream)
        with os.fdopen(writing, "wb", buffering=0) as jvm:
            jvm.write(REFUSED.encode())
        output.join(10)
    monkeypatch.setattr(spark_output, "_outputs", [output])
    assert spark_output.last_error() == "java.nio.file.AccessDeniedException: /opt/pyspark/work"


def test_a_jvm_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{JAVA}")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    with pytest.raises(CdcError, match="Could not create the Java Virtual Machine: no memory") as raised:
        open_session(MaterializerSettings()).__enter__()
    assert raised.value.code is Code.SPARK_FAILED

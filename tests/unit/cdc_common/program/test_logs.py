"""Logs: one JSON object a line away from a terminal, everybody's records in one form, no values of rows."""

from __future__ import annotations

import io
import json
import logging
import warnings
from datetime import datetime

import pytest
import structlog

from cdc_common.program.logs import configure_logging
from cdc_common.settings import LogSettings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_of_ours_and_of_libraries() -> None:
    stream = io.StringIO()
    configure_logging(LogSettings(), stream)
    structlog.get_logger("publisher.log.tail").info("segment done", segment=7)
    logging.getLogger("librdkafka").warning("%s is down", "broker 1")
    ours, theirs = lines(stream)
    assert (ours["event"], ours["segment"], ours["level"]) == ("segment done", 7, "info")
    assert (theirs["event"], theirs["logger"], theirs["level"]) == ("broker 1 is down", "librdkafka", "warning")
    assert datetime.fromisoformat(str(ours["timestamp"])).utcoffset() is not None


def test_a_warning_of_a_library_is_a_json_line() -> None:
    logging.captureWarnings(capture=False)  # of an earlier test
    stream = io.StringIO()
    configure_logging(LogSettings(format="json"), stream)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("this module is old", DeprecationWarning, stacklevel=1)
    finally:
        logging.captureWarnings(capture=False)
    [line] = lines(stream)
    assert "this module is old" in str(line["event"])
    assert (line["logger"], line["level"]) == ("py.warnings", "warning")


def test_levels() -> None:
    stream = io.StringIO()
    configure_logging(LogSettings(level="warning"), stream)
    structlog.get_logger("a").info("unheard")
    structlog.get_logger("a").warning("heard")
    assert [line["event"] for line in lines(stream)] == ["heard"]


@pytest.mark.parametrize("name", ["cassandra.cluster", "py4j.clientserver", "sqlalchemy.engine"])
def test_libraries_that_would_log_values_are_kept_from_it(name: str) -> None:
    stream = io.StringIO()
    configure_logging(LogSettings(level="debug"), stream)
    logging.getLogger(name).info("INSERT … VALUES (secret)")
    logging.getLogger(name).warning("lost")
    assert [line["event"] for line in lines(stream)] == ["lost"]


@pytest.mark.parametrize(
    ("path", "error", "is_logged"),
    [
        ("/venv/lib/py4j/java_gateway.py", ValueError("lost"), False),
        ("/venv/lib/py4j/java_gateway.py", None, True),
        ("/venv/lib/other/java_gateway.py", ValueError("lost"), True),
    ],
)
def test_what_py4j_logs_and_raises_is_not_logged(path: str, error: Exception | None, *, is_logged: bool) -> None:
    stream = io.StringIO()
    configure_logging(LogSettings(), stream)
    exc_info = (type(error), error, None) if error is not None else None
    logging.getLogger().handle(logging.LogRecord("root", logging.ERROR, path, 1, "lost", (), exc_info))
    assert bool(lines(stream)) == is_logged


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_traceback_shows_no_variables(stream: io.StringIO) -> None:
    configure_logging(LogSettings(), stream)

    def fail(row: str) -> None:
        assert row
        raise ValueError("broken")

    try:
        fail("a row's value")
    except ValueError:
        structlog.get_logger("a").exception("failed")
    assert "Traceback" in stream.getvalue()
    assert "ValueError: broken" in stream.getvalue()
    assert "a row's value" not in stream.getvalue().replace('fail("a row\'s value")', "").replace(
        'fail(\\"a row\'s value\\")', ""
    )


def test_a_terminal_is_given_colours_and_a_pipe_is_not() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    configure_logging(LogSettings(), terminal)
    structlog.get_logger("a").info("hello")
    configure_logging(LogSettings(format="console"), pipe)
    structlog.get_logger("a").info("hello")
    assert "\x1b[" in terminal.getvalue()
    assert "hello" in pipe.getvalue()
    assert "\x1b[" not in pipe.getvalue()

"""Makes events of the program's log from the lines that Spark's JVM and its Python processes write to stderr.

Their own JSON lines pass as they are. Any other line, such as one of a stack trace, becomes part of an event.
"""

from __future__ import annotations

import re
import sys
import threading
from typing import IO, TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator

_logger = structlog.get_logger(__name__)
_MOST_BYTES = 65_536
_MOST_CHARACTERS = 4000  # of one event
_END_SECONDS = 1.0
_JSON = b'{"'
_ERROR = re.compile(r"Error|Exception|ERROR")
_OF_A_TRACE = ("at ", "... ")  # the lines below an exception
_OF_EACH_START = (b"WARNING: Using incubator modules",)  # Spark asks for one, and Java says so


def log_lines(stream: IO[bytes]) -> None:
    """Log what comes from the JVM from now on."""
    _outputs[:] = [SparkOutput(stream)]


def last_error() -> str:
    """The last line about an error that the JVM has written, or its last line; empty if it has written nothing.

    It waits a little for the end of the output.
    """
    for output in _outputs:
        output.join(_END_SECONDS)
        lines = output.last.splitlines()
        errors = [line for line in lines if _ERROR.search(line) and not line.lstrip().startswith(_OF_A_TRACE)]
        return next(iter([*errors[-1:], *lines[-1:]]), "")
    return ""


class SparkOutput:
    """Reads the output in a thread of its own, until its end. last: what came last."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.last = ""
        self._thread = threading.Thread(target=self._run, daemon=True, name="spark-output")
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end."""
        self._thread.join(seconds)

    def _run(self) -> None:
        rest = b""
        while data := self._stream.read1(_MOST_BYTES):  # type: ignore[attr-defined]
            whole, newline, rest = (rest + data).rpartition(b"\n")
            if newline:
                self._take(whole.split(b"\n"))
        if rest:
            self._take([rest])

    def _take(self, lines: list[bytes]) -> None:
        for is_json, found in _groups(lines):
            text = b"\n".join(found).decode(errors="replace")
            if is_json:
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()
            else:
                self.last = f"{self.last}\n{text}"[-_MOST_CHARACTERS:]
                _logger.warning("spark", text=text[-_MOST_CHARACTERS:])


def _groups(lines: list[bytes]) -> Iterator[tuple[bool, list[bytes]]]:
    """Lines that follow each other, JSON and other ones apart, without those of each start and empty ones."""
    group: list[bytes] = []
    is_json = False
    for line in lines:
        if not line.strip() or line.startswith(_OF_EACH_START):
            continue
        if group and line.startswith(_JSON) != is_json:
            yield is_json, group
            group = []
        is_json = line.startswith(_JSON)
        group.append(line)
    if group:
        yield is_json, group


_outputs: list[SparkOutput] = []  # of the JVM that this process has started, if any

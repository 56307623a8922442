"""The error for whatever Spark raises, and what of it a restart of the query heals."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.query.spark_output import last_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

_SPARKS_OWN = ("org.apache.spark", "java.", "py4j.", "at ", "File ", "raise ")  # lines that are no task's exception
_QUERY = "=== Streaming Query ==="  # what follows is the query's plan, the same for every error
# What a busy machine, a lost machine or a lost connection does, in Spark's words and in plain ones.
_TRANSIENT = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (
            "Python worker failed to connect back|Timed out while waiting for the Python worker",
            "a Python worker did not start in time, because the machine is too busy or has too little memory",
        ),
        (
            "Python worker exited unexpectedly",
            "a Python worker was killed or crashed, perhaps because memory was short",
        ),
        (
            "ExecutorLostFailure|Executor heartbeat timed out|Remote RPC client disassociated|executor .* exited",
            "an executor was lost: it was killed, memory was short, or its machine is gone",
        ),
        (
            "FetchFailed|Failed to connect to|Connection ?reset|Connection ?refused|Broken ?pipe",
            "a connection between Spark's processes was lost",
        ),
        (
            "Py4JNetworkError|TimeoutException|TimeoutError|timed out",
            "Spark's JVM or an executor did not answer in time",
        ),
    )
)


class SparkInterruptedError(CdcError):
    """CdcError(SPARK_FAILED) for what a restart of the query probably heals."""


@contextmanager
def spark_errors(context: SparkContext) -> Iterator[None]:
    """Turns whatever a call to Spark raises into CdcError(SPARK_FAILED). A CdcError stays, unless Spark has ended."""
    try:
        yield
    except Exception as error:
        if has_ended(context):
            raise spark_ended("running") from error
        if isinstance(error, CdcError):
            raise
        raise spark_failed(error) from error


def has_ended(context: SparkContext) -> bool:
    """Return whether Spark, or its JVM, has ended."""
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - the JVM does not answer, for which Py4J has several errors
        return True


def spark_ended(while_doing: str) -> CdcError:
    """Return CdcError(SPARK_FAILED) with the last error that the JVM has written. while_doing: running or starting."""
    last = last_error()
    return CdcError(
        Code.SPARK_FAILED,
        f"Spark has ended while the driver was {while_doing}: its JVM has died, or its cluster has ended the "
        "application."
        f"{f' It wrote last: {last}' if last else ''}",
        "Start the job again: it continues at its committed offsets. Spark's own log has the cause.",
    )


def spark_failed(error: BaseException) -> CdcError:
    """Return CdcError(SPARK_FAILED) with plain words for what is known, and the most specific line of Spark's message.
    It is a SparkInterruptedError for what a restart of the query probably heals.
    """
    text, _, _ = str(error).partition(_QUERY)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if "Error" in line.partition(":")[0] or "Exception" in line.partition(":")[0]]
    python = [line for line in raised if not line.startswith(_SPARKS_OWN)]
    reason = (python or raised or lines or [type(error).__name__])[-1][:500]
    # Of an exception of a task only the class counts: its words may be about anything.
    evidence = reason.partition(":")[0] if python else f"{type(error).__name__} {text}"
    words = next((words for pattern, words in _TRANSIENT if pattern.search(evidence)), "")
    kind = SparkInterruptedError if words else CdcError
    return kind(
        Code.SPARK_FAILED,
        f"Spark has given up after its retries: {words}{' (' if words else ''}{reason}{').' if words else ''}",
        "Start the job again: it continues at its committed offsets. If it fails again, see the executors' logs.",
    )

"""The error for whatever Spark raises."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

_QUERY = "=== Streaming Query ==="  # what follows is the query's plan, the same for every error


@contextmanager
def spark_errors(context: SparkContext) -> Iterator[None]:
    """Turns whatever a call to Spark raises into CdcError(SPARK_FAILED). A CdcError stays, unless Spark has ended."""
    try:
        yield
    except Exception as error:
        if has_ended(context):
            raise _spark_ended() from error
        if isinstance(error, CdcError):
            raise
        raise spark_failed(error) from error


def has_ended(context: SparkContext) -> bool:
    """Return whether Spark, or its JVM, has ended."""
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - the JVM does not answer, for which Py4J has several errors
        return True


def _spark_ended() -> CdcError:
    return CdcError(
        Code.SPARK_FAILED,
        "Spark has ended while the driver was running: its JVM has died, or its cluster has ended the application.",
        "Start the materializer again: it continues at its committed offsets. Spark's own log has the cause.",
    )


def spark_failed(error: BaseException) -> CdcError:
    """Return CdcError(SPARK_FAILED) with the most specific line of Spark's message."""
    text, _, _ = str(error).partition(_QUERY)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if "Error" in line.partition(":")[0] or "Exception" in line.partition(":")[0]]
    python = [line for line in raised if not line.startswith(("org.apache.spark", "java.", "at ", "File "))]
    reason = (python or raised or lines or [type(error).__name__])[-1]
    return CdcError(
        Code.SPARK_FAILED,
        f"Spark has given up after its retries: {reason[:500]}",
        "Start the materializer again: it continues at its committed offsets. "
        "If it fails again, see the executors' logs.",
    )

"""Spark fails or ends while the driver is running: one error says so, whatever Py4J and Spark raise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.query.spark_errors import SparkInterruptedError, spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

SHUT_DOWN = "Job 7 cancelled because SparkContext was shut down"


class Context:
    """A context whose calls to the JVM all end as `call` does, except the one that asks if it is stopped."""

    def __init__(self, call: Callable[[], object], is_stopped: Callable[[], bool]) -> None:
        self._call = call
        scala = SimpleNamespace(isStopped=is_stopped)
        self._jsc = SimpleNamespace(sc=lambda: scala)

    @property
    def _jvm(self) -> object:
        return self._call()


def raising(error: Exception) -> Callable[[], Any]:
    def call() -> object:
        raise error

    return call


GONE = [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "Connection refused")]


@pytest.mark.parametrize("error", GONE, ids=lambda error: type(error).__name__)
def test_a_jvm_that_has_died(error: Exception) -> None:
    check(Context(raising(error), raising(error)), "has ended")


def test_a_context_that_its_cluster_has_stopped() -> None:
    check(Context(raising(Py4JError(SHUT_DOWN)), lambda: True), "has ended")


def test_an_error_of_a_spark_that_goes_on() -> None:
    check(Context(raising(Py4JError("Job aborted: ExecutorLostFailure")), lambda: False), "ExecutorLostFailure")


def test_an_error_of_our_own_keeps_its_words() -> None:
    error = CdcError(Code.SPARK_FAILED, "The query has failed.", "Look at it.")
    check(Context(raising(error), lambda: False), "^.*The query has failed")
    check(Context(raising(error), lambda: True), "has ended")


def test_the_plan_of_a_query_that_has_failed_is_not_its_error() -> None:
    text = "Python worker failed to connect back.\n=== Streaming Query ===\nThread State: RUNNABLE\n\nLogical Plan:\n~E"
    found = check(
        Context(raising(RuntimeError(text)), lambda: False), r"\(Python worker failed to connect back\.\)\. Start"
    )
    assert "a Python worker did not start in time" in found.problem


ABORTED = "Job aborted due to stage failure: Task 1 in stage 7.0 failed 4 times, most recent failure: "
JAVA = "py4j.protocol.Py4JJavaError: An error occurred while calling o686.collectToPython.\n: "
CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
CONNECT = "org.apache.spark.SparkException: Python worker failed to connect back."
EXECUTOR = (
    "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Executor heartbeat timed out"
)
DEFECT = "Traceback (most recent call last):\n  File worker.py, line 1\nValueError: it timed out while reading a row\n"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            RuntimeError(f"{ABORTED}{CONNECT}\n\tat org.apache.spark.api.python"),
            "a Python worker did not start in time",
        ),
        (RuntimeError("Python worker exited unexpectedly (crashed): java.io.EOFException"), "was killed or crashed"),
        (RuntimeError(f"{ABORTED}{EXECUTOR} after 125000 ms"), "an executor was lost"),
        (RuntimeError(f"{JAVA}{ABORTED}{CRASHED}\n\tat org.apache.spark.api"), "a Python worker was killed or crashed"),
        (Py4JNetworkError("Answer from Java side is empty"), "did not answer in time"),
        (TimeoutError("timed out"), "did not answer in time"),
        (RuntimeError("java.io.IOException: Failed to connect to worker-3:7337"), "a connection between"),
    ],
)
def test_what_a_restart_heals_says_so_in_plain_words(error: Exception, says: str) -> None:
    found = check(Context(raising(error), lambda: False), says)
    assert isinstance(found, SparkInterruptedError)


@pytest.mark.parametrize("error", [RuntimeError(f"{ABORTED}PythonException: {DEFECT}"), ValueError("a defect")])
def test_a_defect_is_no_such_failure(error: Exception) -> None:
    found = check(Context(raising(error), lambda: False), "ValueError|a defect")
    assert not isinstance(found, SparkInterruptedError)


def test_a_jvm_that_is_gone_is_no_such_failure() -> None:
    found = check(Context(raising(GONE[0]), raising(GONE[0])), "has ended")
    assert not isinstance(found, SparkInterruptedError)


def check(context: Context, says: str) -> CdcError:
    with pytest.raises(CdcError, match=says) as caught, spark_errors(cast("SparkContext", context)):
        assert context._jvm
    assert caught.value.code is Code.SPARK_FAILED
    return caught.value

"""The job's status as JSON, as text and as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, generate_latest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.metrics import Collected
from stream_runtime.driver.lag_watch import Lag
from stream_runtime.driver.stopped import Failure, StoppedShares
from stream_runtime.exactly_once.report import Report
from stream_runtime.records import Share, SourcePartition
from stream_runtime.worker.task import TaskResult
from transformer.job.status import TransformStatus, text

if TYPE_CHECKING:
    from collections.abc import Sequence

GOOD, BAD = (
    Share("one/cdc.shop.orders", (SourcePartition("cdc.shop.orders", number),), f"cdc.shop.orders-{number}", "one")
    for number in range(2)
)
REFUSED = CdcError(Code.TRANSFORM_FAILED, "It has no name.", "Name it.")


class FixedLags:
    """Lags as LagWatch measures them."""

    measured_at: float | None = 100.0

    def __init__(self) -> None:
        self.latest = {GOOD: Lag(7, 0), BAD: Lag(3, 5, kept_until=1e12, since=50.0)}

    def set_shares(self, _shares: Sequence[Share]) -> None: ...

    def measure_soon(self) -> None: ...


def status() -> TransformStatus:
    lags: Any = FixedLags()
    made = TransformStatus("the-group", StoppedShares(), lags)
    made.set_shares([GOOD, BAD])
    made.stopped.stop(BAD, Failure(REFUSED, (3, 4)))
    made.count_batch([TaskResult(GOOD, Report(0, 7, 7, 7, 2, 0.5), None), TaskResult(BAD, None, REFUSED)], None)
    return made


def test_the_status_says_what_is_stopped_and_why() -> None:
    shown = text(status().as_json())
    assert "one/cdc.shop.orders-1  CDC-095" in shown
    assert "fix: Name it." in shown
    assert "1 of 2 partitions work; 1 are stopped; lag 5 messages" in shown
    assert "one: 7 messages transformed" in shown


def test_the_metrics() -> None:
    registry = CollectorRegistry()
    registry.register(Collected(status().metrics))
    found = generate_latest(registry).decode()
    assert 'cdc_transformer_messages_total{transformer="one"} 7.0' in found
    assert 'cdc_transformer_errors_total{transformer="one"} 1.0' in found
    assert 'cdc_transformer_stopped_partitions{code="CDC-095"} 1.0' in found
    assert 'cdc_transformer_lag_messages{partition="1",topic="one/cdc.shop.orders"} 5.0' in found

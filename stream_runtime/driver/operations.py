"""The operations port of a job's driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cdc_common.program.metrics import Collected
from cdc_common.program.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric

    from stream_runtime.driver.stopped import StoppedShares
    from stream_runtime.settings import JobSettings

_HEALTH_SECONDS = 600.0  # a batch may restore a large state


class ShownStatus(Protocol):
    """The job's status."""

    stopped: StoppedShares

    def as_json(self) -> dict[str, Any]: ...

    def metrics(self) -> Iterator[Metric]: ...


def job_operations(settings: JobSettings, status: ShownStatus, problem: Callable[[], str] = str) -> Operations:
    """/metrics, /health, /status, and /retry, which makes the next try of stopped shares happen now. problem: as
    that of Operations.
    """

    def retry(names: list[str]) -> dict[str, Any]:
        known = {str(share): share for share in status.stopped.all()}
        named = [known[name] for name in names if name in known] if names else None
        return {"retried": [str(share) for share in status.stopped.retry(named)]}

    address, port = settings.operations_address, settings.operations_port
    commands = {"/retry": retry}
    operations = Operations(
        address, port, status.as_json, commands=commands, health_seconds=_HEALTH_SECONDS, problem=problem
    )
    operations.registry.register(Collected(status.metrics))
    return operations

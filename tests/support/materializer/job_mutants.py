"""Defects of the job, each for the tests that must notice it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import Code
from stream_runtime.driver.driver import BatchDriver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.driver.stopped import Failure
    from stream_runtime.records import Share

STOP_ALL_ON_ONE = "stop all on one"


def stop_all_on_one(patch: Any) -> None:  # noqa: ANN401 - pytest's, or setattr's
    """The error of one raw partition ends the job, unless a start may meet it."""
    whole = BatchDriver.stop_shares

    def raise_first(driver: BatchDriver, failures: Mapping[Share, Failure]) -> None:
        for failure in failures.values():
            if failure.error.code not in {Code.SCHEMA_UNKNOWN, Code.KAFKA_UNREACHABLE}:
                raise failure.error
        whole(driver, failures)

    patch.setattr(BatchDriver, "stop_shares", raise_first)

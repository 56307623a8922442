"""The metrics that a publisher serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from tests.support.publisher.publisher_process import PublisherProcess


def read_metrics(publisher: PublisherProcess) -> dict[str, float]:
    status, body = publisher.get("/metrics")
    assert status == 200
    return {sample.name: sample.value for family in text_string_to_metric_families(body) for sample in family.samples}

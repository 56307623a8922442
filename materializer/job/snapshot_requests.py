"""Asks the publishers for snapshots of tables whose state lacks rows since a TRUNCATE (decision 0035).

The request is a message of the tables topic, which the publishers read. It is the same for the same loss, so it does
not matter how often it is sent.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError
from cdc_common.messages.tables import request_key, request_to_json
from cdc_common.messages.topics import tables_topic
from materializer.processing.fold_report import fold_part
from materializer.records import RawPartition
from stream_runtime.kafka import send_all
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdc_common.settings import KafkaSettings
    from materializer.worker.batch_plan import BatchPlan
    from stream_runtime.worker.task import TaskResult

WAIT_SECONDS = 120.0
"""The time until all raw partitions know of the loss, and one snapshot is enough; or TRUNCATE has been repeated."""
RETRY_SECONDS = 60.0

log = structlog.get_logger(__name__)


class SnapshotRequests:
    """Knows when each raw partition has lost rows. `send` sends messages (kafka.send_all)."""

    def __init__(
        self,
        settings: KafkaSettings,
        send: Callable[[KafkaSettings, Iterable[Message]], None] = send_all,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._send = send
        self._clock = clock
        self._lost_ms: dict[RawPartition, int] = {}
        self._next_try = 0.0

    def send_new(self, results: Sequence[TaskResult], plan: BatchPlan, known: Mapping[bytes, int]) -> None:
        """Record the losses that the tasks of a batch report, and send new requests. known: the requests of the tables
        topic (TableSchemas.requests).
        """
        for result in results:
            if result.report is not None and result.report.chunks:
                self._lost_ms[result.share.partition] = max(fold_part(result.report).lost_hosts.values(), default=0)
        if not any(self._lost_ms.values()) and not any(known.values()):
            return
        wanted = {
            topic.schemas[-1].table_id: lost_at
            for name, topic in plan.topics.items()
            if topic.schemas and (lost_at := self._lost_at(name, topic.raw_partitions)) is not None
        }
        changed = {
            table_id: at
            for table_id, at in wanted.items()
            if at > known.get(table_id, 0) or (not at and known.get(table_id, 0))
        }
        now = self._clock()
        if changed and now >= self._next_try:
            self._next_try = now + RETRY_SECONDS
            self._send_requests(changed)

    def _lost_at(self, topic: str, raw_partitions: int) -> int | None:
        """When the last rows of a table were lost, µs; 0 if none are. None if that is not certain yet."""
        found = [self._lost_ms.get(RawPartition(topic, number)) for number in range(raw_partitions)]
        latest = max((lost for lost in found if lost is not None), default=0)
        if not latest:
            return None if None in found else 0
        return latest * 1000 if latest / 1000 + WAIT_SECONDS <= self._clock() else None

    def _send_requests(self, requests: Mapping[bytes, int]) -> None:
        topic = tables_topic(self._settings.topic_prefix)
        try:
            self._send(
                self._settings,
                [Message(topic, 0, request_key(table_id), request_to_json(at)) for table_id, at in requests.items()],
            )
        except CdcError as error:
            log.warning(
                "snapshot not requested", code=error.code.text, problem=error.problem, fix=error.fix, topic=topic
            )
        else:
            for table_id, at in requests.items():
                log.info("snapshot requested" if at else "snapshot no longer requested", table_id=table_id.hex())

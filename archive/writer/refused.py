"""Messages of a cut that are not of their schema, and become no rows: counted, named, and sent as dead letters."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import structlog

from archive.records import Refused
from archive.writer.rows import FileKey, RowBatch, RowKey
from archive.writer.spill import Spill
from cdc_common.errors.codes import Code
from stream_runtime.records import Message, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_logger = structlog.get_logger(__name__)
_NAMED = 100  # of a cut, in its file event
_MEMORY_BYTES = 1024 * 1024
_ROWS = RowKey("bytes", None, 1)
_KEY = FileKey(*_ROWS, 0)


class RefusedMessages:
    """The refused messages of one share's cut. Those that become dead letters wait on the worker's disk."""

    def __init__(self, topic: str, file: Path) -> None:
        self.counts: Counter[int] = Counter()
        """Their numbers by partition."""
        self.named: list[Refused] = []
        """The first ones."""
        self._topic = topic
        self._spill = Spill(file, _MEMORY_BYTES)

    def add(self, partition: SourcePartition, messages: pa.RecordBatch, *, keep: bool) -> None:
        """Add messages of a partition. keep: they become dead letters."""
        self.counts[partition.partition] += len(messages)
        for row in messages.slice(0, _NAMED - len(self.named)).select(["offset", "reason"]).to_pylist():
            self.named.append(Refused(partition.partition, row["offset"], row["reason"]))
        if keep:
            buckets = pa.repeat(pa.scalar(_KEY.bucket, pa.int64()), len(messages))
            self._spill.add(partition.partition, RowBatch(_ROWS, buckets, messages))

    def letters(self, target: str) -> Iterator[Message]:
        """The dead letters, to the topic `target`: JSON that says where and why, with the bytes of key and value."""
        for partition, messages in self._spill.read(_KEY):
            for row in messages.to_pylist():
                fields = {
                    "topic": self._topic,
                    "partition": partition,
                    "offset": row["offset"],
                    "timestamp_ms": row["timestamp_ms"],
                    "code": Code.ARCHIVE_MESSAGE.text,
                    "reason": row["reason"],
                    "key": _base64(row["key"]),
                    "value": _base64(row["value"]),
                }
                key = f"{self._topic}/{partition}/{row['offset']}"
                yield Message(target, 0, key.encode(), json.dumps(fields, ensure_ascii=False).encode())

    def log(self) -> None:
        """Name the first one, after the commit."""
        if self.named:
            partition, offset, reason = self.named[0]
            where = SourcePartition(self._topic, partition)
            _logger.warning(
                "messages refused", count=self.counts.total(), first=f"{where} offset {offset}", reason=reason
            )

    def clear(self) -> None:
        self.counts.clear()
        self.named.clear()
        self._spill.clear()


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()

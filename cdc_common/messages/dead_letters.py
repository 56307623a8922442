"""The headers of a dead letter: they say where the message was, and why it could not be processed."""

from __future__ import annotations

CODE, REASON = "cdc.code", "cdc.reason"
TOPIC, PARTITION, OFFSET, TIMESTAMP = "cdc.topic", "cdc.partition", "cdc.offset", "cdc.timestamp_ms"

"""Shares of one partition, as a job that plans by topics has them."""

from __future__ import annotations

from stream_runtime.records import Share, SourcePartition


def share(topic: str, partition: int) -> Share:
    return Share.of(SourcePartition(topic, partition))

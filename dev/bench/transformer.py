"""CPU seconds per million of a transformer's value function: five steps on the core, and in Python. No servers.

The steps mask a column by text and one by null, name a number, make flags of another, and document the table; a second
transformer masks by hash. What is measured is from the bytes of a chunk's messages to those of its target's.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import click

from cdc_common.messages import wire
from dev.bench.avro import encoded
from dev.bench.results import report
from stream_runtime.records import SourceRecord, TopicShape
from stream_runtime.source_batch import SourceBatch
from tests.support.cdc_native.envelopes import ENVELOPE, envelope
from tests.support.transformer.definitions import transformer
from tests.support.transformer.memory_catalogue import KEY_ID, VALUE_ID, MemoryCatalogue
from tests.support.transformer.orders import KEY, TOPIC
from transformer.records import Stream
from transformer.routing.routes import Routes

if TYPE_CHECKING:
    from materializer.records import RawPartition

MESSAGES = 20_000
CHUNK = 2_000
ROUNDS = 5
_STEP = "[[transformer.step]]\n"
_FOUR = (
    _STEP + 'kind = "mask"\ncolumns = ["city"]\nhow = "null"\n'
    + _STEP + 'kind = "enum"\ncolumn = "status"\nnames = { "0" = "new", "3" = "paid" }\nunknown = "keep"\n'
    + _STEP + 'kind = "flags"\ncolumn = "bits"\nbits = { gift = 0, express = 2 }\n'
    + _STEP + 'kind = "docs"\ntable = "Orders."\n'
)  # fmt: skip
STEPS = {
    "mask by text": _STEP + 'kind = "mask"\ncolumns = ["email"]\nhow = "redact"\n' + _FOUR,
    "mask by hash": _STEP + 'kind = "mask"\ncolumns = ["email"]\nhow = "hash"\nsalt = "salt"\n' + _FOUR,
}


class Catalogue(MemoryCatalogue):
    def __init__(self) -> None:
        super().__init__()
        self.schemas = {KEY_ID: KEY, VALUE_ID: ENVELOPE}


class Stage:
    """A stream of updates, and its routes."""

    def __init__(self, steps: str) -> None:
        stream = Stream(0, TOPIC, TopicShape(1, "id"), newest_id=VALUE_ID)
        self._routes = Routes(transformer(steps), stream, Catalogue(), self._make)
        key: dict[str, Any] = {"id": 7}
        value = wire.header(VALUE_ID) + encoded(ENVELOPE, envelope(with_before=True))
        self.size = len(value)
        self._chunk = [SourceRecord(wire.header(KEY_ID) + encoded(KEY, key), value, at) for at in range(CHUNK)]

    def _make(self, _topic: str, partitions: int, *, is_keyed: bool) -> int:  # noqa: ARG002 - a MakeTopic
        return partitions

    def measure(self, *, is_native: bool) -> float:
        with patch("transformer.routing.routes.IS_NATIVE", new=is_native):
            rounds = [self._seconds(is_native=is_native) for _ in range(ROUNDS)]
        return statistics.median(rounds)

    def _seconds(self, *, is_native: bool) -> float:
        chunk = SourceBatch.of(self._chunk) if is_native else self._chunk  # as the native consumer reads it
        started = time.process_time()
        for _ in range(MESSAGES // CHUNK):
            made = self._routes.transform_chunk(chunk, 0, _check_nothing)
            if made.native != (CHUNK if is_native else 0) or made.error is not None:
                raise SystemExit(f"{made.native} of {CHUNK} messages were made by the core: {made.error}")
        return (time.process_time() - started) / MESSAGES * 1e6


def _check_nothing(_partition: RawPartition) -> None: ...


@click.command()
def main() -> None:
    """Measure a transformer's value function."""
    found = {}
    for name, steps in STEPS.items():
        stage = Stage(steps)
        core, python = stage.measure(is_native=True), stage.measure(is_native=False)
        found[name] = {"bytes": float(stage.size), "core": core, "Python": python, "times": python / core}
    report("transformer", "CPU seconds per million messages", found, {"messages": MESSAGES, "rounds": ROUNDS})


if __name__ == "__main__":
    main()

from collections.abc import Callable, Mapping
from typing import Any

from cdc_native.formats.batches import Batch

class SendError(Exception):
    code: int
    text: str
    topic: str
    index: int

class Producer:
    def __init__(
        self, library: str, config: Mapping[str, object], most_bytes: int, log: Callable[[int, str], None]
    ) -> None: ...
    def __len__(self) -> int: ...
    def send(self, topic: str, partition: int, key: bytes | None, value: bytes, pending: object) -> bool: ...
    def send_batch(self, topics: tuple[str, ...], batch: Batch, first: int, pending: object) -> int: ...
    def poll(
        self, seconds: float
    ) -> tuple[
        list[tuple[Any, int]],
        int,
        float,
        list[tuple[str, int]],
        list[tuple[int, str, bool]],
        list[tuple[Any, int, int, str]],
    ]: ...
    def refresh_metadata(self, topic: str, seconds: float) -> None: ...

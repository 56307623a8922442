from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from cdc_native.avro.messages import Messages

_Kind = TypeVar("_Kind", bound=NamedTuple)

class SourceBatch:
    topic: str
    partition: int
    keys: Messages
    values: Messages
    count: int
    size: int
    offsets: bytes
    timestamps: bytes
    @staticmethod
    def of(
        topic: str, partition: int, records: Iterable[tuple[bytes | None, bytes | None, int, int]]
    ) -> SourceBatch: ...
    def __len__(self) -> int: ...
    def offset(self, number: int) -> int: ...
    def records(self, kind: type[_Kind]) -> list[_Kind]: ...
    def part(self, first: int, end: int) -> SourceBatch: ...
    def fitting(self, first: int, most_messages: int, most_bytes: int) -> int: ...
    def pairs(
        self,
    ) -> tuple[list[tuple[int | None, int | None, Messages, Messages]], dict[int | None, int]]: ...

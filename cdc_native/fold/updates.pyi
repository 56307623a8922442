# ruff: noqa: ANN401 - objects of packages that are above this one
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cdc_native.fold.plan import Plan

class PlainUpdate:
    record: Any
    arrival_ms: int
    second: int
    table_id: bytes
    partition_key: bytes
    raw: bytes
    key: bytes | None
    file: str
    python: Any
    is_snapshot: bool
    @property
    def message(self) -> Any: ...
    @property
    def order(self) -> tuple[int, bytes, int, int, int]: ...
    def __iter__(self) -> Iterator[Any]: ...

def decode(
    plan: Plan,
    records: Sequence[Any],
    arrival_times_ms: Sequence[int],
    read_message: Callable[[Any], Any],
    truncated: list[tuple[bytes, int, int]],
    may_take_others: bool,
) -> list[PlainUpdate | None]: ...
def wrap(update: Any, key: bytes | None) -> PlainUpdate: ...
def in_write_order(updates: list[PlainUpdate], start_ms: int, clock_ms: int) -> None: ...
def of_new_hosts(arrivals: list[Any]) -> list[Any]: ...
def mutation_end(updates: list[PlainUpdate], at: int) -> int: ...

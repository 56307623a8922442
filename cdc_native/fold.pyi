# ruff: noqa: ANN401 - objects of packages that are above this one
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from cdc_native.plan import Plan
from cdc_native.updates import PlainUpdate

class EncodedChange:
    partition_key: bytes
    schema: bytes
    key: bytes
    value: bytes
    op: Literal["c", "u", "d"]
    row_sequence: int
    is_alone: bool
    is_of_fan_out: bool
    before: bytes | None
    after: bytes | None
    static: bytes | None
    static_after: bytes | None
    before_second: int
    after_second: int
    @property
    def source(self) -> tuple[int, bytes, str, int, Any]: ...
    def row_change(self) -> Any: ...
    def partition(self, count: int) -> int: ...

class Fold:
    is_begun: bool
    written: list[bytes]
    def __init__(
        self,
        plan: Plan,
        *,
        overlay: tuple[dict[bytes, Any], dict[bytes, bytes | None], list[bytes], Callable[[bytes], bytes | None]],
        timers: tuple[dict[bytes, Any], int, Callable[[int, bytes], None]],
        states: dict[bytes, Any],
        changes: list[Any],
        budget: Any,
        floor: int,
        number: int,
        read_columns: Callable[[int, bool], list[tuple[int, int | None]] | None],
        encode: Callable[[Any], bytes],
        convert: Callable[[EncodedChange], Any],
    ) -> None: ...
    def prefetch_keys(self, updates: list[PlainUpdate], has_statics: bool) -> set[bytes]: ...
    def fold(self, updates: list[PlainUpdate], at: int, python_only: AbstractSet[bytes], table: Any) -> int: ...
    def expire_rows(self, partition_key: bytes, second: int, keys: list[bytes], table: Any) -> int: ...
    def fan_out(
        self,
        partition_key: bytes,
        rows: list[tuple[bytes, Any]],
        deletion: tuple[int, ...] | None,
        source: tuple[int, bytes, str, int, str],
        seconds: tuple[int, ...],
        statics: tuple[bytes | None, bytes | None, bool],
        statics_size: int,
    ) -> tuple[int, int]: ...

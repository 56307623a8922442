# ruff: noqa: ANN401 - objects of packages that are above this one
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from cdc_native.fold.changes import EncodedChange
from cdc_native.fold.plan import Plan
from cdc_native.fold.updates import PlainUpdate

class Fold:
    why: Literal["end", "python", "expires", "ranges"]
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
        is_in_snapshot: bool,
        read_columns: Callable[[int, bool], list[tuple[int, int | None]] | None],
        encode: Callable[[Any], bytes],
        convert: Callable[[EncodedChange], Any],
    ) -> None: ...
    def prefetch_keys(self, updates: list[PlainUpdate], has_statics: bool) -> set[bytes]: ...
    def fold(
        self, updates: list[PlainUpdate], at: int, python_only: AbstractSet[bytes], ranged: tuple[int, ...] | None
    ) -> int: ...
    def expire_rows(self, partition_key: bytes, second: int, keys: list[bytes]) -> int: ...
    def fan_out(
        self,
        partition_key: bytes,
        rows: list[tuple[bytes, Any]],
        deletion: tuple[int, ...] | None,
        source: tuple[int, bytes, str, int, str, bool, bool],
        seconds: tuple[int, ...],
        statics: tuple[bytes | None, bytes | None, bool],
        statics_size: int,
    ) -> tuple[int, int]: ...

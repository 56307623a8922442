from typing import Any, Literal

class EncodedChange:
    partition_key: bytes
    schema: bytes
    key: bytes
    value: bytes
    empty: int
    unreadable: int
    op: Literal["c", "u", "d", "r"]
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
    def source(self) -> tuple[int, bytes, str, int, Any, bool, bool]: ...
    def row_change(self) -> Any: ...  # noqa: ANN401 - of a package above this one
    def partition(self, count: int) -> int: ...

def run_of(changes: list[Any], start: int, most: int) -> tuple[int, int, int]: ...

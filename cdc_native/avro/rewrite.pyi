from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from cdc_native.avro.messages import Messages
from cdc_native.avro.program import Program

Path: TypeAlias = tuple[str, ...]

class Extents:
    count: int
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def of(self, number: int, path: Path) -> tuple[int, int] | None: ...

class Layout:
    program: Program
    slots: dict[Path, int]
    def __init__(self, program: Program, opened: Iterable[Path] = ()) -> None: ...
    def __len__(self) -> int: ...
    def extents(self, messages: Messages, skipped: int = 0) -> Extents: ...

class Rewrite:
    layout: Layout
    def __init__(self, layout: Layout, ops: Sequence[tuple[Any, ...]]) -> None: ...
    def apply(
        self, messages: Messages, skipped: int = 0, header: bytes = b"", given: Iterable[Messages] = ()
    ) -> Messages: ...

from collections.abc import Sequence
from typing import TypeAlias

from typing_extensions import Buffer

from cdc_native.avro.messages import Messages
from cdc_native.avro.rewrite import Layout

Piece: TypeAlias = tuple[int, int, bool]
Filter: TypeAlias = tuple[int, int, int, bool, Sequence[tuple[int, int] | tuple[bytes, bytes | None]]]

def decode(key: bytes, value: bytes) -> tuple[int, int, int, int, int, int, int, str, bytes, bytes] | None: ...

class Routes:
    def __init__(
        self,
        layout: Layout,
        images: Sequence[Sequence[Sequence[Piece]]],
        filters: Sequence[Sequence[Filter]],
        first: Sequence[int],
        source: Sequence[int],
        version: int,
        flags: int,
        number: int,
        keeps_alone: bool,
    ) -> None: ...
    def apply(
        self,
        messages: Messages,
        offsets: Buffer,
        partition: int,
        partitions: int,
        places: tuple[int, int] | None,
        skipped: int,
    ) -> list[tuple[int, Messages, Messages]]: ...

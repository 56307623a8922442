from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from cdc_native.formats.keys import KeyForm

# (first token, last token, the key that the first partition must have or None, whether that partition lies before the
# first token, bytes of the data from there on, that data in chunks)
SpanData: TypeAlias = tuple[int, int, bytes | None, bool, int, Iterator[bytes]]

class RowShapes:
    def __init__(
        self,
        columns: Sequence[tuple[bytes, int, KeyForm | None]],
        statics: Sequence[tuple[bytes, int, KeyForm | None]],
        clustering: Sequence[tuple[int, KeyForm]],
    ) -> None: ...

class SSTable:
    index: int
    def __init__(
        self,
        index: int,
        shapes: RowShapes,
        statics: Sequence[tuple[int, int | None]],
        regulars: Sequence[tuple[int, int | None]],
        stats: tuple[int, int, int],
        version: int,
        has_uint_deletion_time: bool,
        spans: Iterable[SpanData],
    ) -> None: ...

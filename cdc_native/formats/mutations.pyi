from collections.abc import Iterable
from typing import TypeAlias

from cdc_native.formats.batches import Batch

# A column: (its name as serialized in an update's header, the length of its values or -1 if it varies, whether its
# elements are cells of their own, whether it is a counter).
Column: TypeAlias = tuple[bytes, int, bool, bool]

# A prepared table: (its id, the lengths of its clustering columns as those of columns, its static columns, its regular
# columns, what its messages begin with, what they have between `update` and `segment`). Columns are in the order in
# which updates name them, and include dropped ones.
Table: TypeAlias = tuple[bytes, tuple[int, ...], tuple[Column, ...], tuple[Column, ...], bytes, bytes]

class MutationSplitter:
    def __init__(
        self,
        tables: Iterable[Table],
        silent: Iterable[Table] = (),
        ignored: Iterable[bytes] = (),
        excluded: Iterable[bytes] = (),
    ) -> None: ...
    def begin_segment(self, segment: bytes) -> None: ...
    def walk(self, batch: Batch, data: bytes, at: int, until: int, most: int, start: int) -> int: ...

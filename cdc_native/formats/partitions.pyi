from collections.abc import Callable, Iterable

from cdc_native.formats.batches import Batch
from cdc_native.formats.row_images import RowImages
from cdc_native.formats.sstables import SSTable

class Merge:
    place: tuple[int, bytes, tuple[bytes | None, ...] | None] | None
    rows: int
    partitions: int
    is_done: bool
    is_stopped: bool
    def __init__(
        self,
        images: RowImages,
        sources: Iterable[tuple[int, Callable[[int], SSTable]]],
        purge: tuple[int, int, int, int | None],
        after: tuple[int, bytes, bytes | None] | None,
    ) -> None: ...
    def fill(self, batch: Batch, most_bytes: int, most_steps: int) -> None: ...

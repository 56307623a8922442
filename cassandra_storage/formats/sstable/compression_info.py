"""CompressionInfo.db (org.apache.cassandra.io.compress.CompressionMetadata): how Data.db is compressed.

Layout: the compressor's class and its options, the chunks' length, from `na` on the least length of a chunk that is not
compressed, the length of the data, the number of chunks, and where each begins in Data.db. A chunk's CRC32 follows it.
"""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.java_input import JavaInput

OFFSET_SIZE = 8
MAX_HEAD = 1 << 20  # bytes: more than all options take
_INT_MAX = 2**31 - 1


class CompressionInfo(NamedTuple):
    """The beginning of CompressionInfo.db, before the chunks' positions."""

    # The class name of the compressor.
    compressor: str
    # The options of the compressor, by name.
    options: dict[str, str]
    # The bytes of a chunk before it is compressed; the last one may be shorter.
    chunk_length: int
    # A chunk of this length or more lies in Data.db as it is.
    max_compressed_length: int
    # The bytes of the data before they are compressed.
    data_length: int
    # The number of positions, which are numbers of 8 bytes.
    chunks: int
    # The offset at which the positions begin.
    offsets_start: int

    @property
    def used_chunks(self) -> int:
        """Return how many chunks the data take: a writer that was flushed when it was full leaves an empty one after
        them.
        """
        return -(-self.data_length // self.chunk_length)


def parse_compression_info(head: bytes, size: int, *, has_max_compressed_length: bool) -> CompressionInfo:
    """`head`: the first MAX_HEAD bytes of the file of `size` bytes. FormatError with the position in it."""
    source = JavaInput(head)
    compressor = source.read_utf()
    options = {source.read_utf(): source.read_utf() for _ in range(source.read_count(4))}
    chunk_length = source.read_int()
    if chunk_length <= 0 or chunk_length & (chunk_length - 1):
        raise source.error(f"chunks of {chunk_length} bytes, which is no power of two")
    max_compressed_length = source.read_int() if has_max_compressed_length else _INT_MAX
    if max_compressed_length < 0:
        raise source.error(f"{max_compressed_length} is no length of a chunk")
    data_length = source.read_long()
    chunks = source.read_int()
    if data_length < 0 or chunks < max(-(-data_length // chunk_length), 1):
        raise source.error(f"{chunks} chunks of {chunk_length} bytes for {data_length} bytes of data")
    if source.pos + chunks * OFFSET_SIZE != size:
        raise FormatError(f"positions of {chunks} chunks in a file of {size} bytes", position=source.pos)
    return CompressionInfo(compressor, options, chunk_length, max_compressed_length, data_length, chunks, source.pos)

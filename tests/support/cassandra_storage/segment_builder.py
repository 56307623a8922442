"""Writes commit log segments as CommitLogSegment, CompressedSegment and EncryptedSegment do."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SEGMENT_ID = 1_700_000_000_123
NAME = f"CommitLog-7-{SEGMENT_ID}.log"


def ints(*values: int) -> bytes:
    return b"".join(struct.pack(">I", value & 0xFFFFFFFF) for value in values)


def descriptor(version: int = 7, segment_id: int = SEGMENT_ID, parameters: Mapping[str, object] | None = None) -> bytes:
    text = json.dumps(parameters or {}).encode()
    crc = crc32(text, crc32(ints(version, segment_id, segment_id >> 32, len(text))))
    return struct.pack(">iqH", version, segment_id, len(text)) + text + ints(crc)


def marker(position: int, end: int) -> bytes:
    return ints(end, crc32(ints(SEGMENT_ID, SEGMENT_ID >> 32, position)))


def size_checksum(size: int) -> bytes:
    return ints(crc32(ints(size)))


def entry(mutation: bytes) -> bytes:
    size = ints(len(mutation))
    return size + size_checksum(len(mutation)) + mutation + ints(crc32(mutation, crc32(size)))


def segment(
    sections: list[list[bytes]], size: int | None = None, parameters: Mapping[str, object] | None = None
) -> bytes:
    """A whole segment. With `size` the last section ends with the file, as when a full segment is closed."""
    data = descriptor(parameters=parameters)
    for index, mutations in enumerate(sections):
        body = b"".join(map(entry, mutations))
        end = len(data) + 8 + len(body)
        if size is not None and index == len(sections) - 1:
            body += bytes(size - end)
            end = size
        data += marker(len(data), end) + body
    return data


def coded_segment(
    sections: list[list[bytes]], parameters: Mapping[str, object], encode: Callable[[bytes], bytes]
) -> bytes:
    """A compressed or encrypted segment: `encode` makes what follows a section's length of its content."""
    data = descriptor(parameters=parameters)
    for mutations in sections:
        content = b"".join(map(entry, mutations))
        body = ints(len(content)) + encode(content)
        data += marker(len(data), len(data) + 8 + len(body)) + body
    return data


def encrypted_blocks(
    content: bytes, encrypt: Callable[[bytes], bytes], compress: Callable[[bytes], bytes], block_size: int
) -> bytes:
    """EncryptedSegment.write: the blocks of one section."""
    blocks = b""
    for start in range(0, len(content), block_size):
        block = content[start : start + block_size]
        held = ints(len(block)) + compress(block)
        encrypted = encrypt(held)
        blocks += ints(len(encrypted), len(held)) + encrypted
    return blocks

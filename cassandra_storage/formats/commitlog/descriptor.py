"""The descriptor that a commit log segment begins with, its file's name, and the `_cdc.idx` file beside it
(org.apache.cassandra.db.commitlog.CommitLogDescriptor), without I/O.
"""

from __future__ import annotations

import json
import re
import struct
from typing import NamedTuple
from zlib import crc32

from cassandra_storage.formats.commitlog.sections import EncryptionParameters
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.versions import commit_log_format

_FILE_NAME = re.compile(r"CommitLog-(\d{1,9})-(\d{1,18})\.log")
_INDEX_SUFFIX = "_cdc.idx"
_DESCRIPTOR_START = struct.Struct(">iqH")


class CommitLogDescriptor(NamedTuple):
    """CommitLogDescriptor: the beginning of a segment."""

    # The version of the commit log format.
    version: int
    # The segment's id.
    id: int
    # The version of the mutations' serialization.
    messaging_version: int
    # The bytes that the descriptor takes.
    size: int
    # The class name of an ICompressor; None if sections are not compressed.
    compression: str | None = None
    # The parameters of the encryption; None if sections are not encrypted.
    encryption: EncryptionParameters | None = None


class CdcIndex(NamedTuple):
    """The content of a `_cdc.idx` file."""

    # The logical offset up to which the segment is durable.
    offset: int
    # The segment is finished. The offset is to be ignored then: read to the zero marker or the end of the file.
    is_completed: bool


def parse_file_name(name: str) -> tuple[int, int]:
    """CommitLogDescriptor.fromFileName: (version, segment id) of `CommitLog-<version>-<id>.log`."""
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        raise FormatError("not the name of a commit log segment", segment=name)
    return int(match[1]), int(match[2])


def index_file_name(name: str) -> str:
    """CommitLogDescriptor.cdcIndexFileName: the name of the `_cdc.idx` file of a segment's file."""
    return name.removesuffix(".log") + _INDEX_SUFFIX


def parse_cdc_index(content: bytes) -> CdcIndex | None:
    """A `_cdc.idx` file; None if it is empty (it is truncated before it is written again)."""
    if not content.strip():
        return None
    offset, _, rest = content.partition(b"\n")
    if not offset.isdigit() or len(offset) > 10 or not b"COMPLETED".startswith(rest.strip()):
        raise FormatError("not a _cdc.idx file")
    return CdcIndex(int(offset), rest.strip() == b"COMPLETED")


def descriptor_size(buf: bytes) -> int:
    """Return the number of bytes that the descriptor takes, or the least number if `buf` does not show it yet."""
    length = _DESCRIPTOR_START.unpack_from(buf)[2] if len(buf) >= _DESCRIPTOR_START.size else 0
    return int(_DESCRIPTOR_START.size + length + 4)


def read_descriptor(buf: bytes) -> CommitLogDescriptor | None:
    """CommitLogDescriptor.readHeader of a segment's first bytes; None if more of them are needed (also while they are
    still zero). FormatError if it is damaged, UnsupportedError if it is of another version.
    """
    if len(buf) < _DESCRIPTOR_START.size:
        return None
    version, segment_id, length = _DESCRIPTOR_START.unpack_from(buf)
    if version == 0 and segment_id == 0:
        return None
    end = _DESCRIPTOR_START.size + length
    if len(buf) < end + 4:
        return None
    parameters = buf[_DESCRIPTOR_START.size : end]
    crc = crc32(struct.pack(">iIIi", version, segment_id & 0xFFFFFFFF, segment_id >> 32 & 0xFFFFFFFF, length))
    if crc32(parameters, crc) != int.from_bytes(buf[end : end + 4], "big"):
        raise FormatError("segment descriptor with a wrong CRC", position=0)
    messaging_version = commit_log_format(version).messaging_version
    try:
        compression, encryption = _parse_parameters(json.loads(parameters or b"{}"))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise FormatError("segment descriptor with wrong parameters", position=_DESCRIPTOR_START.size) from None
    return CommitLogDescriptor(version, segment_id, messaging_version, end + 4, compression, encryption)


def _parse_parameters(parameters: dict[str, str]) -> tuple[str | None, EncryptionParameters | None]:
    """CommitLogDescriptor.parseCompression, EncryptionContext.createFromMap; TypeError or the like if wrong."""
    compression = parameters.get("compressionClass")
    cipher, key_alias = parameters.get("encCipher"), parameters.get("encKeyAlias")
    for text in (compression, cipher, key_alias):
        if not isinstance(text, str | None):
            raise TypeError
    if cipher is None or key_alias is None:
        return compression, None
    return compression, EncryptionParameters(cipher, key_alias, bytes.fromhex(parameters["encIV"]))

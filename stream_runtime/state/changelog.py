"""A changelog: what one chunk changed in a state, as a file in the checkpoint location.

name    <version>.<parent>.changelog
file    "CDCL", BLAKE2b of all that follows (16 bytes), format version (1 byte), length of the body (8 bytes), body
        compressed with zstd; a later format keeps at least the first two
body    length of the header (4 bytes), header (JSON), then each write: length of the key (4 bytes), length of the value
        (4 bytes, -1 for a deletion), key, value
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

import pyarrow as pa

import cdc_native
from stream_runtime.errors import check_format

IS_NATIVE = cdc_native.is_enabled()
if IS_NATIVE:
    from cdc_native.fold.changelog import encode_body as _native_body

FORMAT_VERSION = 1  # of the state's layout too
_MAGIC = b"CDCL"
_DIGEST_SIZE = 16
_BODY_INFO = struct.Struct(">BQ")
_WRITE = struct.Struct(">Ii")
_SUFFIX = ".changelog"


class DamagedDataError(Exception):
    """The bytes are not what was written; the argument describes the damage."""


class Head(NamedTuple):
    """The identity of a state."""

    # Its version.
    version: str
    # The next offset to process.
    offset: int
    # Its time, in ms.
    now_ms: int
    # The source topic's number of partitions.
    partitions: int


class Changelog(NamedTuple):
    """The writes that lead from one state to the next."""

    # The new state.
    head: Head
    # The version of the state before.
    parent: str
    # The next offset of the state before.
    previous_offset: int
    # The written values by their keys; None deletes.
    writes: Mapping[bytes, bytes | None]


def file_name(version: str, parent: str) -> str:
    return f"{version}.{parent}{_SUFFIX}"


def parse_file_name(name: str) -> tuple[str, str] | None:
    """(version, parent), or None for another file."""
    parts = name.removesuffix(_SUFFIX).split(".")
    return (parts[0], parts[1]) if name.endswith(_SUFFIX) and len(parts) == 2 else None


def encode_head(head: Head) -> bytes:
    return json.dumps({"format": FORMAT_VERSION, **head._asdict()}).encode()


def decode_head(data: bytes) -> Head:
    """Decode a head. DamagedDataError, or CdcError(STATE_FORMAT) for another format."""
    try:
        fields = json.loads(data)
        check_format("A stored state", int(fields.pop("format")), FORMAT_VERSION)
        return Head(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedDataError("its head is not valid JSON with the expected fields") from error


def encode(changelog: Changelog) -> bytes:
    header = json.dumps(
        {
            **changelog.head._asdict(),
            "parent": changelog.parent,
            "previous_offset": changelog.previous_offset,
        }
    ).encode()
    body = _native_body(header, changelog.writes) if IS_NATIVE else encode_body(header, changelog.writes)
    compressed: bytes = pa.compress(body, codec="zstd", asbytes=True)
    content = _BODY_INFO.pack(FORMAT_VERSION, len(body)) + compressed
    return _MAGIC + _digest(content) + content


def encode_body(header: bytes, writes: Mapping[bytes, bytes | None]) -> bytes:
    """Header and writes, before compression."""
    parts = [struct.pack(">I", len(header)), header]
    pack = _WRITE.pack
    for key, value in writes.items():
        if value is None:
            parts += (pack(len(key), -1), key)
        else:
            parts += (pack(len(key), len(value)), key, value)
    return b"".join(parts)


def decode(data: bytes) -> Changelog:
    """Decode a changelog. DamagedDataError if it is not what was written, CdcError(STATE_FORMAT) for another format."""
    start = len(_MAGIC) + _DIGEST_SIZE
    if data[: len(_MAGIC)] != _MAGIC:
        raise DamagedDataError("it does not begin with a changelog's magic bytes")
    content = memoryview(data)[start:]
    if len(content) < _BODY_INFO.size or data[len(_MAGIC) : start] != _digest(content):
        raise DamagedDataError("its checksum is wrong")
    version, length = _BODY_INFO.unpack_from(content)
    check_format("A stored state", version, FORMAT_VERSION)
    body = pa.decompress(content[_BODY_INFO.size :], decompressed_size=length, codec="zstd", asbytes=True)
    return _decode_body(body)


def _decode_body(body: bytes) -> Changelog:
    (header_length,) = struct.unpack_from(">I", body)
    position = 4 + header_length
    header = json.loads(body[4:position])
    parent, previous_offset = header.pop("parent"), header.pop("previous_offset")
    writes: dict[bytes, bytes | None] = {}
    while position < len(body):
        key_length, value_length = _WRITE.unpack_from(body, position)
        key_end = position + _WRITE.size + key_length
        key = body[position + _WRITE.size : key_end]
        position = key_end + max(value_length, 0)
        writes[key] = None if value_length < 0 else body[key_end:position]
    return Changelog(Head(**header), parent, previous_offset, writes)


def _digest(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=_DIGEST_SIZE).digest()

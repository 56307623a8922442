"""The content of a compressed or encrypted section of a commit log segment (CommitLogSegmentReader.CompressedSegmenter
and EncryptedSegmenter, security.EncryptionUtils), with algorithms from the caller.

A compressed section is the length of its content and one compressed block. An encrypted one is the length of its
content and blocks: length of the encrypted bytes, length of what they hold, the bytes; and what they hold is the length
of the block's content and that, compressed by LZ4.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from cassandra_storage.formats.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK_HEAD = struct.Struct(">II")
_LENGTH_SIZE = 4
_COMPRESSOR_OF_ENCRYPTED = "LZ4Compressor"  # EncryptionContext knows no other


class EncryptionParameters(NamedTuple):
    """EncryptionContext, as a segment's descriptor holds it."""

    # A Java transformation, such as `AES/CBC/PKCS5Padding`.
    cipher: str
    # The name of the key in the keystore.
    key_alias: str
    # The initialization vector.
    iv: bytes


# (compressed bytes, n) -> their content; FormatError if they are damaged or hold more than n bytes.
Decompressor: TypeAlias = "Callable[[bytes, int], bytes]"
# Encrypted bytes of one block -> their content without padding; FormatError if they are damaged.
Decryptor: TypeAlias = "Callable[[bytes], bytes]"
# (a section after its content's length, that length) -> the content as far as it is readable, and the error there.
SectionDecoder: TypeAlias = "Callable[[bytes, int], tuple[bytes, FormatError | None]]"


class Codecs(Protocol):
    """Finds the algorithms that a descriptor names; UnsupportedError if it cannot."""

    def decompressor(self, class_name: str) -> Decompressor:
        """Choose it by the class name of an ICompressor, with or without its package."""

    def decryptor(self, parameters: EncryptionParameters) -> Decryptor:
        """Decrypts with the key of that alias."""


class NoCodecs:
    """The codecs of plain segments: none."""

    def decompressor(self, class_name: str) -> Decompressor:
        raise UnsupportedError(f"no codec for segments compressed by {class_name}")

    def decryptor(self, parameters: EncryptionParameters) -> Decryptor:
        raise UnsupportedError(f"no key for segments encrypted by {parameters.cipher}")


def section_decoder(
    compression: str | None, encryption: EncryptionParameters | None, codecs: Codecs
) -> SectionDecoder | None:
    """The function that decodes the sections of such a segment; None for a plain one. Encrypted ones ignore
    `compression`.
    """
    if encryption is not None:
        return partial(_decrypted, codecs.decryptor(encryption), codecs.decompressor(_COMPRESSOR_OF_ENCRYPTED))
    return partial(_decompressed, codecs.decompressor(compression)) if compression is not None else None


def _decompressed(decompress: Decompressor, section: bytes, size: int) -> tuple[bytes, FormatError | None]:
    try:
        return decompress(section, size), None
    except FormatError as error:
        return b"", error


def _decrypted(
    decrypt: Decryptor, decompress: Decompressor, section: bytes, size: int
) -> tuple[bytes, FormatError | None]:
    """The blocks up to the first that is damaged."""
    blocks: list[bytes] = []
    try:
        blocks.extend(_blocks(decrypt, decompress, section, size))  # extend keeps what came before an error
    except FormatError as error:
        return b"".join(blocks), error
    return b"".join(blocks), None


def _blocks(decrypt: Decryptor, decompress: Decompressor, section: bytes, size: int) -> Iterator[bytes]:
    """EncryptionUtils.decrypt and uncompress, until the section ends (EncryptedSegmenter.chunkProvider)."""
    left, pos = size, 0
    while pos < len(section):
        start = pos + _BLOCK_HEAD.size
        if start > len(section):
            raise FormatError("section ends inside an encrypted block", position=pos)
        encrypted_size, held_size = _BLOCK_HEAD.unpack_from(section, pos)
        pos = start + encrypted_size
        if pos > len(section):
            raise FormatError("encrypted block reaches past its section", position=start)
        held = decrypt(section[start:pos])[:held_size]
        block_size = int.from_bytes(held[:_LENGTH_SIZE], "big")
        if not _LENGTH_SIZE <= held_size == len(held) or block_size > left:
            raise FormatError("encrypted block of a wrong length", position=start)
        yield decompress(held[_LENGTH_SIZE:], block_size)
        left -= block_size

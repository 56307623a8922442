"""The algorithms of compressed and encrypted segments (org.apache.cassandra.io.compress, security.CipherFactory)."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

import cramjam
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from cassandra_storage.formats.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.commitlog.sections import Decompressor, Decryptor, EncryptionParameters

_LENGTH_SIZE = 4  # before LZ4's block
# Maximum number of bytes that one compressed byte can represent: it bounds the memory that a length can claim.
_LZ4_MOST = 256
_SNAPPY_MOST = 32  # a copy of 64 bytes takes three bytes
_ZSTD_MOST = 1 << 15  # a block of 128 KiB that repeats one byte takes four bytes
_CIPHER = "AES/CBC/PKCS5Padding"  # the default of TransparentDataEncryptionOptions.cipher


class SegmentCodecs:
    """Implements cassandra_storage.formats.commitlog.sections.Codecs. `keys`: the bytes of AES keys by their alias in
    the keystore, which has only lower case; none for a log that is not encrypted.
    """

    def __init__(self, keys: Mapping[str, bytes] | None = None) -> None:
        self._keys = keys or {}

    def decompressor(self, class_name: str) -> Decompressor:
        """The decompressor for an ICompressor's class name, with or without its package."""
        found = _DECOMPRESSORS.get(class_name.removeprefix("org.apache.cassandra.io.compress."))
        if found is None:
            raise UnsupportedError(f"compression by {class_name} is not supported")
        return found

    def decryptor(self, parameters: EncryptionParameters) -> Decryptor:
        """The decryptor with the key of the parameters' alias."""
        if parameters.cipher != _CIPHER:
            raise UnsupportedError(f"encryption by {parameters.cipher} is not supported")
        key = self._keys.get(parameters.key_alias.lower())
        if key is None:
            raise UnsupportedError(f"no key with the alias {parameters.key_alias} for an encrypted segment")
        return partial(_decrypt, Cipher(algorithms.AES(key), modes.CBC(parameters.iv)))


def _decrypt(cipher: Cipher[modes.CBC], block: bytes) -> bytes:
    """Decrypt a block. Each block starts from the segment's IV, as Cipher.doFinal resets it."""
    decryptor = cipher.decryptor()
    unpadder = PKCS7(128).unpadder()
    try:
        padded = decryptor.update(block) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:
        raise FormatError("damaged encrypted block, or wrong key") from None


def _lz4(data: bytes, most: int) -> bytes:
    """LZ4Compressor: the content's length, little-endian, and one LZ4 block."""
    size = int.from_bytes(data[:_LENGTH_SIZE], "little")
    if size > min(most, len(data) * _LZ4_MOST):
        raise FormatError(f"LZ4 block of {len(data)} bytes that claims to hold {size}")
    content = bytearray(size)
    if cramjam.lz4.decompress_block_into(memoryview(data)[_LENGTH_SIZE:], content) != size:
        raise FormatError("LZ4 block that holds less than it claims")
    return bytes(content)


def _snappy(data: bytes, most: int) -> bytes:
    """SnappyCompressor: one raw Snappy block, which begins with its content's length."""
    size = cramjam.snappy.decompress_raw_len(data)
    if size > min(most, len(data) * _SNAPPY_MOST):
        raise FormatError(f"Snappy block of {len(data)} bytes that claims to hold {size}")
    return bytes(cramjam.snappy.decompress_raw(data))


def _deflate(data: bytes, most: int) -> bytes:
    """DeflateCompressor: a zlib stream."""
    inflater = zlib.decompressobj()
    content = inflater.decompress(data, most + 1)  # 0 would be no limit
    if not inflater.eof or len(content) > most:
        raise FormatError(f"zlib stream of {len(data)} bytes that does not end within {most}")
    return content


def _zstd(data: bytes, most: int) -> bytes:
    """ZstdCompressor: Zstd frames."""
    content = bytearray(min(most, len(data) * _ZSTD_MOST))
    size = cramjam.zstd.decompress_into(data, content)
    return bytes(memoryview(content)[:size])


def _noop(data: bytes, most: int) -> bytes:
    """NoopCompressor: the content itself."""
    if len(data) > most:
        raise FormatError(f"section of {len(data)} bytes for {most}")
    return data


def _checked(decompress: Decompressor, data: bytes, most: int) -> bytes:
    try:
        return decompress(data, most)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise FormatError(f"cannot be decompressed: {error}") from None


_DECOMPRESSORS: dict[str, Decompressor] = {
    "LZ4Compressor": partial(_checked, _lz4),
    "SnappyCompressor": partial(_checked, _snappy),
    "DeflateCompressor": partial(_checked, _deflate),
    "ZstdCompressor": partial(_checked, _zstd),
    "NoopCompressor": _noop,
}

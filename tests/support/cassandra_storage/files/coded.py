"""Compressed and encrypted segments as each of Cassandra's writers makes them, and the codecs that read them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import cramjam
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from cassandra_storage.files.codecs import SegmentCodecs
from tests.support.cassandra_storage.segment_builder import coded_segment, descriptor, encrypted_blocks

KEY, IV = bytes(range(32)), bytes(range(16))
CODECS = SegmentCodecs({"alias": KEY})


class Form(NamedTuple):
    """A kind of segment: what its descriptor says, and how a section's content is written."""

    name: str
    parameters: dict[str, object]
    encode: Callable[[bytes], bytes]

    @property
    def header_size(self) -> int:
        return len(descriptor(parameters=self.parameters))

    def segment(self, sections: list[list[bytes]]) -> bytes:
        return coded_segment(sections, self.parameters, self.encode)


def lz4(content: bytes) -> bytes:
    return len(content).to_bytes(4, "little") + bytes(cramjam.lz4.compress_block(content, store_size=False))


def encrypt(held: bytes, key: bytes = KEY) -> bytes:
    padder = PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(IV)).encryptor()
    return encryptor.update(padder.update(held) + padder.finalize()) + encryptor.finalize()


def compressed(name: str, encode: Callable[[bytes], bytes]) -> Form:
    return Form(name, {"compressionClass": f"{name}Compressor", "compressionParameters": {}}, encode)


ENCRYPTION = {"encCipher": "AES/CBC/PKCS5Padding", "encKeyAlias": "Alias", "encIV": IV.hex()}
FORMS = (
    compressed("LZ4", lz4),
    compressed("Snappy", lambda content: bytes(cramjam.snappy.compress_raw(content))),
    compressed("Deflate", zlib.compress),
    compressed("Zstd", lambda content: bytes(cramjam.zstd.compress(content))),
    compressed("Noop", bytes),
    Form("encrypted", {**ENCRYPTION}, partial(encrypted_blocks, encrypt=encrypt, compress=lz4, block_size=50)),
)

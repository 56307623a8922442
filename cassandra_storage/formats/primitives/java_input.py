"""Reads what java.io.DataInput reads: big-endian numbers, texts and bytes from a buffer. Every length is checked."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import read_int, read_sized, read_unsigned_vint

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_BYTE, _SHORT, _INT = struct.Struct(">b"), struct.Struct(">H"), struct.Struct(">i")
_UNSIGNED, _LONG, _DOUBLE = struct.Struct(">I"), struct.Struct(">q"), struct.Struct(">d")


class JavaInput:
    """Reads `buf` from `pos` on; FormatError with the position, plus `base`, where it ends too early."""

    __slots__ = ("_base", "buf", "pos")

    def __init__(self, buf: bytes, pos: int = 0, *, base: int = 0) -> None:
        self.buf = buf
        self.pos = pos
        self._base = base

    @property
    def position(self) -> int:
        return self._base + self.pos

    @property
    def left(self) -> int:
        return len(self.buf) - self.pos

    def error(self, reason: str) -> FormatError:
        return FormatError(reason, position=self.position)

    def read_bytes(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise self.error(f"ends inside {count} bytes")
        self.pos += count
        return self.buf[self.pos - count : self.pos]

    def read_count(self, size: int) -> int:
        """An int that counts things of at least `size` bytes, which must all be there."""
        count = self.read_int()
        if not 0 <= count * size <= self.left:
            self.pos -= 4
            raise self.error(f"a count of {count} reaches past the end")
        return count

    def read_boolean(self) -> bool:
        return self._number(_BYTE) != 0

    def read_unsigned_short(self) -> int:
        return self._number(_SHORT)

    def read_int(self) -> int:
        return self._number(_INT)

    def read_unsigned_int(self) -> int:
        return self._number(_UNSIGNED)

    def read_long(self) -> int:
        return self._number(_LONG)

    def read_double(self) -> float:
        (value,) = _DOUBLE.unpack(self.read_bytes(8))
        return float(value)

    def read_uuid(self) -> UUID:
        return UUID(bytes=self.read_bytes(16))

    def read_utf(self) -> str:
        """DataInput.readUTF; its own form of U+0000 and of characters beyond the BMP is refused."""
        return self._decode(self.read_bytes(self.read_unsigned_short()))

    def read_short_sized(self) -> bytes:
        """ByteBufferUtil.readWithShortLength."""
        return self.read_bytes(self.read_unsigned_short())

    def read_unsigned_vint(self) -> int:
        return self._by(read_unsigned_vint)

    def read_vint_int(self) -> int:
        """DataInputPlus.readUnsignedVInt32."""
        return self._by(read_int)

    def read_vint_sized(self) -> bytes:
        """ByteBufferUtil.readWithVIntLength."""
        return self._by(read_sized)

    def read_vint_text(self) -> str:
        return self._decode(self.read_vint_sized())

    def _number(self, form: struct.Struct) -> int:
        (value,) = form.unpack(self.read_bytes(form.size))
        return int(value)

    def _by(self, read: Callable[[bytes, int], tuple[_T, int]]) -> _T:
        try:
            value, self.pos = read(self.buf, self.pos)
        except FormatError as error:
            raise self.error(error.reason) from None
        return value

    def _decode(self, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise self.error("a text that is not UTF-8") from None

"""Variable-length integers (org.apache.cassandra.utils.vint.VIntCoding).

The count of leading one bits in the first byte is the count of bytes that follow; the value is big-endian in the rest.
"""

from __future__ import annotations

from cassandra_storage.formats.errors import FormatError

MAX_SIZE = 9


def _size(first_byte: int) -> int:
    return 9 - (~first_byte & 0xFF).bit_length()


# The whole size of a vint by its first byte, for those who only step over it: `pos += SIZES[buf[pos]]`.
SIZES = bytes(_size(byte) for byte in range(256))
# The value's bits by the vint's size: a vint of 9 bytes holds 64.
_MASKS = (0, *((1 << (7 * size)) - 1 for size in range(1, MAX_SIZE)), (1 << 64) - 1)
_LIMITS = tuple(1 << (7 * size) for size in range(MAX_SIZE))


def read_unsigned_vint(buf: bytes, pos: int) -> tuple[int, int]:
    """VIntCoding.readUnsignedVInt: (value in 0 .. 2**64 - 1, position after it)."""
    if pos >= len(buf):
        raise FormatError("ends where an integer should be", position=pos)
    first = buf[pos]
    if first < 0x80:
        return first, pos + 1
    size = SIZES[first]
    end = pos + size
    if end > len(buf):
        raise FormatError("ends inside an integer", position=pos)
    return int.from_bytes(buf[pos:end], "big") & _MASKS[size], end


def read_vint(buf: bytes, pos: int) -> tuple[int, int]:
    """VIntCoding.readVInt: (value in -2**63 .. 2**63 - 1 from its zigzag form, position after it)."""
    value, pos = read_unsigned_vint(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def read_int(buf: bytes, pos: int) -> tuple[int, int]:
    """`(int) readUnsignedVInt()`: (the lower 32 bits as a signed number, position after it).

    Cassandra writes negatives sign-extended to 64 bits, other writers (Scylla) as unsigned 32 bits. 3.0 to 4.1 cast
    both; 5.0 refuses the second.
    """
    value, end = read_unsigned_vint(buf, pos)
    if value > 0x7FFFFFFF:
        value = ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    return value, end


def read_sized(buf: bytes, pos: int) -> tuple[bytes, int]:
    """ByteBufferUtil.readWithVIntLength: (the bytes that follow their length, position after them)."""
    length, start = read_unsigned_vint(buf, pos)
    end = start + length
    if end > len(buf):
        raise FormatError(f"length {length} reaches past the end", position=pos)
    return buf[start:end], end


def write_unsigned_vint(value: int) -> bytes:
    """VIntCoding.writeUnsignedVInt of 0 .. 2**64 - 1."""
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value < 1 << 64:
        raise ValueError(f"{value} does not fit 64 unsigned bits")
    for size in range(2, MAX_SIZE):
        if value < _LIMITS[size]:
            return (value | (0xFF00 >> (size - 1) & 0xFF) << (8 * (size - 1))).to_bytes(size, "big")
    return b"\xff" + value.to_bytes(8, "big")


def write_vint(value: int) -> bytes:
    """VIntCoding.writeVInt of -2**63 .. 2**63 - 1: zigzag."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} does not fit 64 bits")
    return write_unsigned_vint(((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def write_int(value: int) -> bytes:
    """VIntCoding.writeUnsignedVInt32 of an int: its lower 32 bits as a signed number, sign-extended to 64."""
    value &= 0xFFFFFFFF
    if value > 0x7FFFFFFF:
        return b"\xff\xff\xff\xff\xff" + value.to_bytes(4, "big")
    return write_unsigned_vint(value)


def write_sized(value: bytes) -> bytes:
    """ByteBufferUtil.writeWithVIntLength."""
    return write_unsigned_vint(len(value)) + value

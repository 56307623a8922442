"""Order-preserving bytes of single values (org.apache.cassandra.utils.bytecomparable.ByteSource, version OSS50).

Each encoder gives bytes whose order and identity are those of the type's comparator. No result is a prefix of
another unless the byte that follows in a sequence (0x10 to 0xEF) puts the shorter one first. An empty result stands
for an empty value, which is below all others. Where Cassandra's bytes and its comparator differ (a NaN of unusual
bits), these follow the comparator.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, localcontext
from typing import TypeAlias

from cassandra_storage.formats.errors import FormatError

ByteEncoder: TypeAlias = Callable[[bytes], bytes]

_INVERTED = bytes(255 - byte for byte in range(256))
_SIGNS_FLIPPED = bytes(byte ^ 0x80 for byte in range(256))
_FLIPPED_FIRST = tuple(bytes([byte ^ 0x80]) for byte in range(256))
_ZEROS = re.compile(rb"\x00+")
_INT64 = struct.Struct(">q")
_FULL_FORM_THRESHOLD = 7  # IntegerType.FULL_FORM_THRESHOLD
_NATIVE_STR_BITS = 10_000
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])


def invert(encoded: bytes) -> bytes:
    """The order turned round."""
    return encoded.translate(_INVERTED)


def escaped(value: bytes) -> bytes:
    """AbstractEscaper: a zero byte ends the value, n of the value's own are 00 FE*(n-1) FF, at its end 00 FE*n."""
    if 0 not in value:
        return value + b"\x00"
    body = value.rstrip(b"\x00")
    trailing = len(value) - len(body)
    return _ZEROS.sub(_escape_zeros, body) + b"\x00" + b"\xfe" * trailing


def _escape_zeros(zeros: re.Match[bytes]) -> bytes:
    return b"\x00" + b"\xfe" * (len(zeros.group()) - 1) + b"\xff"


def _wrong_size(name: str, value: bytes) -> FormatError:
    return FormatError(f"a {name} of {len(value)} bytes")


def signed_fixed_length(name: str, size: int) -> ByteEncoder:
    """SignedFixedLengthNumber: the first bit inverted."""

    def encode(value: bytes) -> bytes:
        if len(value) == size:
            return _FLIPPED_FIRST[value[0]] + value[1:]
        if value:
            raise _wrong_size(name, value)
        return value

    return encode


def fixed_length(name: str, size: int) -> ByteEncoder:
    """optionalFixedLength: the bytes as they are."""

    def encode(value: bytes) -> bytes:
        if value and len(value) != size:
            raise _wrong_size(name, value)
        return value

    return encode


def floating(name: str, layout: str) -> ByteEncoder:
    """SignedFixedLengthFloat: negatives inverted, others with the first bit set; all NaNs are one, above infinity."""
    unpack = struct.Struct(layout).unpack
    size = struct.calcsize(layout)
    nan = struct.pack(layout, math.nan)

    def encode(value: bytes) -> bytes:
        if len(value) != size:
            if value:
                raise _wrong_size(name, value)
            return value
        (number,) = unpack(value)
        if number != number:  # noqa: PLR0124  a NaN
            value = nan
        return value.translate(_INVERTED) if value[0] & 0x80 else _FLIPPED_FIRST[value[0]] + value[1:]

    return encode


def boolean(value: bytes) -> bytes:
    if len(value) > 1:
        raise _wrong_size("boolean", value)
    return value and (b"\x00" if value == b"\x00" else b"\x01")


def bigint(value: bytes) -> bytes:
    if len(value) == 8:
        (number,) = _INT64.unpack(value)
        return variable_length_integer(number)
    if value:
        raise _wrong_size("bigint", value)
    return value


def variable_length_integer(number: int) -> bytes:
    """VariableLengthInteger: the inverted sign, as many bits like it as there are further bytes, then the number."""
    magnitude = number if number >= 0 else ~number
    size = (magnitude.bit_length() or 1) // 7 + 1
    if size >= 9:
        leading, size = b"\xff", 8
        magnitude |= 1 << 63
    else:
        leading = b""
        magnitude |= (-0x100 >> size & 0xFF) << (8 * size - 8)
    encoded = leading + magnitude.to_bytes(size, "big")
    return encoded if number >= 0 else encoded.translate(_INVERTED)


def _variable_length_unsigned(number: int) -> bytes:
    """VariableLengthUnsignedInteger: as many leading ones as there are further bytes, then the number."""
    further = ((number | 1).bit_length() - 1) // 7
    return (number | (-256 >> further & 0xFF) << (8 * further)).to_bytes(further + 1, "big")


def varint(value: bytes) -> bytes:
    """IntegerType: up to six bytes as variable_length_integer; above, the sign, the length and the bytes."""
    if not value:
        return value
    number = int.from_bytes(value, "big", signed=True)
    size = ((number if number >= 0 else ~number).bit_length() + 7) // 8
    if size < _FULL_FORM_THRESHOLD:
        return variable_length_integer(number)
    length = _variable_length_unsigned(size - _FULL_FORM_THRESHOLD)
    if number >= 0:
        return b"\xff" + length + number.to_bytes(size, "big")
    return b"\x00" + invert(length) + (number + (1 << 8 * size)).to_bytes(size, "big")


def decimal(value: bytes) -> bytes:
    """DecimalType: sign and length of the exponent of 100, the exponent, then two decimal digits a byte."""
    if not value:
        return value
    if len(value) < 5:
        raise _wrong_size("decimal", value)
    scale = int.from_bytes(value[:4], "big", signed=True)
    unscaled = int.from_bytes(value[4:], "big", signed=True)
    if not unscaled:
        return b"\x80"
    digits = _digits(abs(unscaled))
    shift = scale - len(digits)
    if shift & 1:
        digits = "0" + digits
    digits = digits.rstrip("0")
    mantissa = [int(digits[at : at + 2].ljust(2, "0")) for at in range(0, len(digits), 2)]
    exponent = -(shift & ~1) >> 1
    if unscaled > 0:
        return _decimal_header(0x80, exponent) + bytes(0x80 + pair for pair in mantissa) + b"\x00"
    # Each step takes the floor, so a negative number's first byte is low and what follows is the distance above it.
    complements = [99 - pair for pair in mantissa]
    complements[-1] += 1
    complements[0] -= 100
    return _decimal_header(0x00, -exponent) + bytes(0x80 + pair for pair in complements) + b"\x00"


def _decimal_header(sign: int, exponent: int) -> bytes:
    size = (abs(exponent).bit_length() + 7) // 8
    return bytes([sign + 0x40 + (-size if exponent < 0 else size)]) + (exponent % (1 << 8 * size)).to_bytes(size, "big")


def _digits(number: int) -> str:
    """Return the decimal digits. Python's own conversion is quadratic, and refuses numbers above some 14,000 bits."""
    size = number.bit_length()
    if size < _NATIVE_STR_BITS:
        return str(number)
    with localcontext(_EXACT):
        return str(_decimal_of(number, size))


def _decimal_of(number: int, size: int) -> Decimal:
    """The number of at most `size` bits by halves, as Decimal multiplies faster than it converts."""
    if size < _NATIVE_STR_BITS:
        return Decimal(number)
    half = size // 2
    high, low = number >> half, number & ((1 << half) - 1)
    return _decimal_of(high, size - half) * Decimal(2) ** half + _decimal_of(low, half)


def uuid(value: bytes) -> bytes:
    """UUIDType: by version; version 1 by its time; then by the bytes."""
    if len(value) != 16:
        if value:
            raise _wrong_size("uuid", value)
        return value
    if value[6] & 0xF0 == 0x10:
        return value[6:8] + value[4:6] + value[:4] + value[8:]
    high = int.from_bytes(value[:8], "big")
    swizzled = (high << 48) & 0xF000000000000000 | (high >> 4) & 0x0FFFFFFFFFFFF000 | high & 0xFFF
    return swizzled.to_bytes(8, "big") + value[8:]


def timeuuid(value: bytes) -> bytes:
    """AbstractTimeUUIDType: by time, then by the bytes as signed ones."""
    if len(value) == 16:
        return value[6:8] + value[4:6] + value[:4] + value[8:].translate(_SIGNS_FLIPPED)
    if value:
        raise _wrong_size("timeuuid", value)
    return value


def lexical_uuid(value: bytes) -> bytes:
    """LexicalUUIDType: two signed longs."""
    if len(value) == 16:
        return _FLIPPED_FIRST[value[0]] + value[1:8] + _FLIPPED_FIRST[value[8]] + value[9:]
    if value:
        raise _wrong_size("uuid", value)
    return value


def empty(value: bytes) -> bytes:
    if value:
        raise _wrong_size("value of type empty", value)
    return value


NATIVE_ENCODERS: dict[str, ByteEncoder] = {
    "ascii": escaped,
    "bigint": bigint,
    "blob": escaped,
    "boolean": boolean,
    "date": fixed_length("date", 4),
    "decimal": decimal,
    "double": floating("double", ">d"),
    "duration": escaped,
    "empty": empty,
    "float": floating("float", ">f"),
    "inet": escaped,
    "int": signed_fixed_length("int", 4),
    "smallint": signed_fixed_length("smallint", 2),
    "text": escaped,
    "time": fixed_length("time", 8),
    "timestamp": signed_fixed_length("timestamp", 8),
    "timeuuid": timeuuid,
    "tinyint": signed_fixed_length("tinyint", 1),
    "uuid": uuid,
    "varint": varint,
}
"""All native types by CQL name, except counter, which has no order."""

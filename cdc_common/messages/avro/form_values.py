"""Serialized CQL values in the forms that are not Cassandra's own (cdc_common.messages.avro.type_forms)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types import marshal
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.messages.avro.cql_values import NATIVE_ENCODERS, EmptyValueError, Encoder
from cdc_common.messages.avro.encoding import encode_bytes, encode_long, encode_string
from cdc_common.messages.avro.number_texts import decimal_text, duration_text, integer_text
from cdc_common.messages.avro.type_forms import MOST_DIGITS
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from cassandra_storage.formats.types.serializers import BigDecimal, Duration
    from cdc_common.messages.avro.type_forms import FixedDecimal, OutOfRange, TypeForms

_DAY_NS = 24 * 3600 * 1_000_000_000
_MAX_LONG = 2**63
# The years 1 to 9999, which SQL and most programs have.
RANGES = {"date": (-719_162, 2_932_896), "timestamp": (-62_135_596_800_000, 253_402_300_799_999)}
_EPOCHS = {"date": 2**31, "timestamp": 0}


def decode_value(name: str, value: bytes) -> object:
    """The value of a native type. EmptyValueError, FormatError."""
    if not value:
        NATIVE_ENCODERS[name](value)  # says how it is refused
    return marshal.decode(NativeType(name), value)


def decode_decimal(value: bytes) -> BigDecimal:
    if len(value) < 5:
        raise FormatError(f"a decimal of {len(value)} bytes") if value else EmptyValueError
    return cast("BigDecimal", decode_value("decimal", value))


def decode_duration(value: bytes) -> Duration:
    return cast("Duration", decode_value("duration", value))


def decode_varint(value: bytes) -> int:
    return cast("int", decode_value("varint", value))


def _decimal_string(value: bytes) -> bytes:
    return encode_string(decimal_text(*decode_decimal(value)))


def _decimal_double(value: bytes) -> bytes:
    return struct.pack("<d", float(decimal_text(*decode_decimal(value))))


def _varint_string(value: bytes) -> bytes:
    return encode_string(integer_text(decode_varint(value)))


def _varint_decimal(value: bytes) -> bytes:
    number = decode_varint(value)
    if abs(number) >= 10**MOST_DIGITS:
        raise FormatError(f"a varint of more than {MOST_DIGITS} digits")
    return encode_bytes(shortest(number))


def _duration_text(value: bytes) -> bytes:
    return encode_string(duration_text(decode_duration(value)))


def _duration_nanoseconds(value: bytes) -> bytes:
    months, days, nanoseconds = decode_duration(value)
    total = days * _DAY_NS + nanoseconds
    if months or not -_MAX_LONG <= total < _MAX_LONG:
        raise FormatError("a duration that is no number of nanoseconds")
    return encode_long(total)


def fixed_decimal(name: str, fixed: FixedDecimal) -> Encoder:
    """Encodes a decimal or varint as decimal(precision, scale), if it is one exactly."""
    limit = 10**fixed.precision

    def encode(value: bytes) -> bytes:
        unscaled, scale = decode_decimal(value) if name == "decimal" else (decode_varint(value), 0)
        unscaled = _rescaled(unscaled, fixed.scale - scale)
        if abs(unscaled) >= limit:
            raise FormatError(f"a {name} of more digits than decimal({fixed.precision},{fixed.scale}) has")
        return encode_bytes(shortest(unscaled))

    return encode


def _rescaled(unscaled: int, by: int) -> int:
    """unscaled * 10 ** by. FormatError if that has a fraction, or more digits than any decimal(p,s)."""
    if not unscaled:
        return 0
    if by >= 0:
        if by > MOST_DIGITS:
            raise FormatError("a decimal of too many digits")
        return unscaled * int(10**by)
    if -by > unscaled.bit_length():  # 2 ** n has fewer than n digits: it is no multiple of 10 ** n
        raise FormatError("a decimal of too many digits after the point")
    whole, rest = divmod(unscaled, int(10**-by))
    if rest:
        raise FormatError("a decimal of too many digits after the point")
    return whole


def shortest(number: int) -> bytes:
    """The shortest two's complement, big-endian."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def is_shortest(value: bytes) -> bool:
    """Whether two's complement has no byte too many."""
    return len(value) < 2 or (value[0], value[1] >> 7) not in {(0, 0), (0xFF, 1)}


_ENCODERS: dict[tuple[str, str], Encoder] = {
    ("decimal", "string"): _decimal_string,
    ("decimal", "double"): _decimal_double,
    ("varint", "string"): _varint_string,
    ("varint", "decimal"): _varint_decimal,
    ("duration", "text"): _duration_text,
    ("duration", "nanoseconds"): _duration_nanoseconds,
}


def native_encoder(name: str, forms: TypeForms) -> Encoder:
    """Encodes a native type in its form."""
    if name in RANGES:
        return in_range(name, forms.out_of_range, NATIVE_ENCODERS[name])
    return _ENCODERS.get((name, native_form(name, forms)), NATIVE_ENCODERS[name])


def native_form(name: str, forms: TypeForms) -> str:
    """The name of a native type's form; "" for a type that has but one."""
    match name:
        case "decimal":
            return forms.decimals
        case "varint":
            return forms.varints
        case "duration":
            return forms.durations
    return ""


def in_range(name: str, policy: OutOfRange, encode: Encoder) -> Encoder:
    """The encoder of a date or timestamp, for values outside the years 1 to 9999 too."""
    if policy == "as_is":
        return encode
    first, last = RANGES[name]

    def encode_in_range(value: bytes) -> bytes:
        encoded = encode(value)
        number = int.from_bytes(value, "big", signed=not _EPOCHS[name]) - _EPOCHS[name]
        if first <= number <= last:
            return encoded
        if policy == "error":
            raise MessageError(f"a {name} outside the years 1 to 9999 (materializer.out_of_range is error)")
        raise FormatError(f"a {name} outside the years 1 to 9999")

    return encode_in_range

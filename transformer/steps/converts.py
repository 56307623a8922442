"""Conversions of the encoding of a value: as Python code, and in the form that the native core takes.

The Python code is what the core's conversions are compared with, and what runs without the core.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from cdc_common.messages.avro.encoding import FALSE, NULL, TRUE, VALUE, encode_string
from cdc_common.messages.avro.skipping import read_long
from transformer.errors import TransformError

NativeForm: TypeAlias = tuple[str, str, int, bool, Any, Any]
"""(kind, lift, null's branch or -1, whether one branch is left, argument, argument): cdc_native.avro.converts."""


class Convert(Protocol):
    """Converts the encoding of a value to another. TransformError for a value that is refused."""

    def __call__(self, value: bytes, /) -> bytes: ...
    @property
    def native(self) -> NativeForm: ...


class ConvertValue(Protocol):
    """Converts as Convert does, a value that is not null; None for null."""

    def __call__(self, value: bytes, /) -> bytes | None: ...
    @property
    def native(self) -> tuple[str, Any, Any]: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Every value, null included, becomes the same."""

    # The value, in Avro's encoding.
    encoded: bytes

    def __call__(self, _value: bytes) -> bytes:
        return self.encoded

    @property
    def native(self) -> NativeForm:
        return "constant", "whole", -1, False, self.encoded, None


@dataclass(frozen=True, slots=True)
class Lifted:
    """A conversion of values that may be null."""

    # The conversion of values that are not null.
    convert: ConvertValue
    # `whole` for a type that has no null, before or after; `nullable` for one that may become null; `branches` for a
    # union with null, or of one type.
    lift: Literal["whole", "nullable", "branches"]
    # The number of the union's branch that is null; -1 if none is.
    null_at: int = -1
    # Whether the union has one other branch. If it has several, the branch's number is part of the value.
    is_single: bool = False

    def __call__(self, value: bytes) -> bytes:
        if self.lift == "branches":
            branch, start = read_long(value, 0)
            if branch == self.null_at:
                return NULL
            value = value[start:] if self.is_single else value
        made = self.convert(value)
        if self.lift == "whole":
            assert made is not None
            return made
        return NULL if made is None else VALUE + made

    @property
    def native(self) -> NativeForm:
        kind, argument, more = self.convert.native
        return kind, self.lift, self.null_at, self.is_single, argument, more


@dataclass(frozen=True, slots=True)
class Text:
    """Every value becomes the same text."""

    # The text, in Avro's encoding.
    encoded: bytes

    def __call__(self, _value: bytes) -> bytes:
        return self.encoded

    @property
    def native(self) -> tuple[str, Any, Any]:
        return "text", self.encoded, None


@dataclass(frozen=True, slots=True)
class Hash:
    """The HMAC-SHA256 of the encoding under a salt, in hexadecimal."""

    # The key of the HMAC.
    salt: bytes = field(repr=False)

    def __call__(self, value: bytes) -> bytes:
        return encode_string(hmac.new(self.salt, value, hashlib.sha256).hexdigest())

    @property
    def native(self) -> tuple[str, Any, Any]:
        return "hash", self.salt, None


@dataclass(frozen=True, slots=True)
class Name:
    """A number's name."""

    # The column's name, for errors.
    column: str
    # The names by their numbers, in Avro's encoding.
    names: Mapping[int, bytes]
    # What becomes of a number without a name.
    unknown: Literal["stop", "null", "keep"]

    def __call__(self, value: bytes) -> bytes | None:
        number, _ = read_long(value, 0)
        name = self.names.get(number)
        if name is not None or self.unknown == "null":
            return name
        if self.unknown == "keep":
            return encode_string(str(number))
        raise TransformError(f'the number in column {self.column} has no name (names, or unknown = "null" or "keep")')

    @property
    def native(self) -> tuple[str, Any, Any]:
        return "name", self.names, self.unknown


@dataclass(frozen=True, slots=True)
class Bit:
    """A bit of a number. A negative number is the one of its two's complement."""

    # The column's name, for errors.
    column: str
    # The bit.
    mask: int
    # All bits of the number's type.
    every: int
    # Bits that must not be set.
    refused: int

    def __call__(self, value: bytes) -> bytes:
        number = read_long(value, 0)[0] & self.every
        if number & self.refused:
            raise TransformError(f'a bit that is set in column {self.column} has no name (bits, or unknown = "ignore")')
        return TRUE if number & self.mask else FALSE

    @property
    def native(self) -> tuple[str, Any, Any]:
        return "bit", self.mask, (self.every, self.refused)

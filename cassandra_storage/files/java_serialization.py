"""A reader of Java's object serialization (java.io.ObjectStreamConstants) for secret keys: objects, classes, strings
and byte arrays. It refuses anything other than these, and its errors never show the content.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import io

_STREAM_START = b"\xac\xed\x00\x05"
_FIRST_HANDLE = 0x7E0000
_PLAIN = 0x02  # SC_SERIALIZABLE without a writeObject of its own
_PRIMITIVES = {b"B": ">b", b"C": ">H", b"D": ">d", b"F": ">f", b"I": ">i", b"J": ">q", b"S": ">h", b"Z": ">?"}


class _Tag(IntEnum):
    NULL = 0x70
    REFERENCE = 0x71
    CLASS = 0x72
    OBJECT = 0x73
    STRING = 0x74
    ARRAY = 0x75
    END_OF_ANNOTATION = 0x78


class _Class(NamedTuple):
    name: str
    fields: list[tuple[bytes, str]]
    parent: _Class | None


def read_object(stream: io.BytesIO) -> dict[str, Any]:
    """The fields of the object at the stream's position, and those of its superclasses. The stream moves after it.

    ValueError if there is no object, or if it has unsupported content.
    """
    if stream.read(4) != _STREAM_START:
        raise ValueError("not a serialized Java object")
    try:
        fields = _Reader(stream).value()
    except (struct.error, RecursionError):
        raise ValueError("ends inside a serialized Java object") from None
    if not isinstance(fields, dict):
        raise ValueError("not a serialized Java object")  # noqa: TRY004  the bytes are wrong, not the caller
    return fields


class _Reader:
    def __init__(self, stream: io.BytesIO) -> None:
        self._stream = stream
        self._handles: list[Any] = []

    def value(self) -> Any:  # noqa: ANN401  dict (an object), _Class, str, bytes or None
        match tag := self._number(">B"):
            case _Tag.NULL:
                return None
            case _Tag.REFERENCE:
                return self._referred(self._number(">I") - _FIRST_HANDLE)
            case _Tag.CLASS:
                return self._class()
            case _Tag.OBJECT:
                return self._object()
            case _Tag.STRING:
                return self._add_handle(self._text())
            case _Tag.ARRAY:
                return self._array()
        raise ValueError(f"serialized Java of kind {tag:#x} is not supported")

    def _referred(self, index: int) -> Any:  # noqa: ANN401
        if not 0 <= index < len(self._handles) or self._handles[index] is None:
            raise ValueError("invalid reference in serialized Java")
        return self._handles[index]

    def _class(self) -> _Class:
        name = self._text()
        self._bytes(8)  # serialVersionUID
        index = len(self._handles)
        self._handles.append(None)
        flags = self._number(">B")
        fields = [self._field() for _ in range(self._number(">H"))]
        if self._number(">B") != _Tag.END_OF_ANNOTATION or flags != _PLAIN:
            raise ValueError(f"serialized Java class {name} is not supported")
        parent = self.value()
        if not isinstance(parent, _Class | None):
            raise ValueError("invalid superclass in serialized Java")  # noqa: TRY004
        self._handles[index] = _Class(name, fields, parent)
        return self._handles[index]  # type: ignore[no-any-return]

    def _field(self) -> tuple[bytes, str]:
        kind, name = self._bytes(1), self._text()
        if kind not in _PRIMITIVES:
            self.value()  # the name of its class
        return kind, name

    def _object(self) -> dict[str, Any]:
        cls: _Class | None = self._expect_class()
        fields: dict[str, Any] = self._add_handle({})
        hierarchy: list[_Class] = []
        while cls is not None:
            hierarchy.insert(0, cls)
            cls = cls.parent
        for one in hierarchy:
            for kind, name in one.fields:
                fields[name] = self._number(_PRIMITIVES[kind]) if kind in _PRIMITIVES else self.value()
        return fields

    def _array(self) -> bytes:
        if self._expect_class().name != "[B":
            raise ValueError("serialized Java array that is not of bytes")
        index = len(self._handles)
        self._handles.append(None)
        self._handles[index] = self._bytes(self._number(">I"))
        return self._handles[index]  # type: ignore[no-any-return]

    def _expect_class(self) -> _Class:
        cls = self.value()
        if not isinstance(cls, _Class):
            raise ValueError("missing class in serialized Java")  # noqa: TRY004
        return cls

    def _add_handle(self, value: Any) -> Any:  # noqa: ANN401
        self._handles.append(value)
        return value

    def _text(self) -> str:
        return self._bytes(self._number(">H")).decode()

    def _number(self, form: str) -> Any:  # noqa: ANN401  int, or float or bool of such a field
        return struct.unpack(form, self._stream.read(struct.calcsize(form)))[0]

    def _bytes(self, count: int) -> bytes:
        found = self._stream.read(count)
        if len(found) != count:
            raise ValueError("ends inside a serialized Java object")
        return found

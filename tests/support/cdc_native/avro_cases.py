"""Random Avro schemas, values of them and their bytes, in any blocks that Avro allows. fastavro is the judge."""

from __future__ import annotations

import io
import random
import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import fastavro

from cdc_common.messages.avro.encoding import END, encode_bytes, encode_long
from cdc_common.messages.avro.forms import Form, form_of
from cdc_common.messages.avro.schemas import to_tree
from cdc_native.avro.program import Program

Json = Any
_INT = (0, 1, -1, 63, -64, 64, 2**31 - 1, -(2**31))
_LONG = (*_INT, 2**63 - 1, -(2**63))
_TEXTS = ("", "a", "tea", "größe", "\U0001f375" * 3, "x" * 200)
_SECONDS = 4_000_000_000  # after 1970, which every datetime holds
_LOGICAL: dict[str, tuple[Json, int]] = {
    "date": ({"type": "int", "logicalType": "date"}, 40_000),
    "time-millis": ({"type": "int", "logicalType": "time-millis"}, 86_400_000),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, 86_400_000_000),
    "timestamp-millis": ({"type": "long", "logicalType": "timestamp-millis"}, _SECONDS * 1000),
    "timestamp-micros": ({"type": "long", "logicalType": "timestamp-micros"}, _SECONDS * 1_000_000),
    "local-timestamp-millis": ({"type": "long", "logicalType": "local-timestamp-millis"}, _SECONDS * 1000),
    "local-timestamp-micros": ({"type": "long", "logicalType": "local-timestamp-micros"}, _SECONDS * 1_000_000),
}


@dataclass
class Schemas:
    """Draws schemas. with_unions: also unions that no column of Arrow holds, and arrays of nothing."""

    rng: random.Random
    with_unions: bool = False
    names: int = 0

    def record(self, depth: int = 3, most: int = 6) -> dict[str, Json]:
        self.names += 1
        name = f"R{self.names}"
        count = self.rng.randint(1, most)
        fields = [{"name": f"f{number}", "type": self.maybe_null(depth - 1)} for number in range(count)]
        if len(fields) > 1 and isinstance(fields[0]["type"], dict) and "symbols" in fields[0]["type"]:
            fields.append({"name": "again", "type": fields[0]["type"]["name"]})
        return {"type": "record", "name": name, "fields": fields}

    def maybe_null(self, depth: int) -> Json:
        made = self.any(depth)
        if self.with_unions and self.rng.random() < 0.1:
            return self.rng.choice((["int", "null", "string"], ["string", "bytes"], ["double"], "null"))
        if self.rng.random() < 0.5:
            return made
        return ["null", made] if self.rng.random() < 0.7 else [made, "null"]

    def any(self, depth: int) -> Json:  # noqa: PLR0911 - a type each
        rng = self.rng
        kind = rng.randrange(14 if depth > 0 else 10)
        if kind < 6:
            return rng.choice(("boolean", "int", "long", "float", "double", "bytes", "string"))
        if kind < 8:
            return dict(rng.choice(list(_LOGICAL.values()))[0])
        if kind == 8:
            return self.named()
        if kind == 9:
            return rng.choice(
                (
                    {"type": "string", "logicalType": "uuid"},
                    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": rng.choice((0, 2, 38))},
                )
            )
        if kind == 10:
            return {"type": "array", "items": self.maybe_null(depth - 1)}
        if kind == 11:
            return {"type": "map", "values": self.maybe_null(depth - 1)}
        return self.record(depth)

    def named(self) -> Json:
        self.names += 1
        name = f"N{self.names}"
        return self.rng.choice(
            (
                {"type": "enum", "name": name, "symbols": ["A", "BB", "CCC"]},
                {"type": "fixed", "name": name, "size": self.rng.choice((1, 5, 16))},
                {"type": "fixed", "name": name, "size": 8, "logicalType": "decimal", "precision": 18, "scale": 3},
            )
        )


@dataclass
class Case:
    """A schema and its program."""

    schema: Json
    form: Form
    program: Program

    @classmethod
    def of(cls, schema: Json) -> Case:
        form = form_of(*to_tree(schema))
        return cls(schema, form, Program(form))

    def message(self, rng: random.Random, *, in_blocks: bool = False) -> bytes:
        return encode_any(rng, self.form, in_blocks=in_blocks)

    def decode(self, data: bytes) -> Json:
        """Fastavro's values, with uuids as text."""
        file = io.BytesIO(data)
        made = fastavro.schemaless_reader(file, fastavro.parse_schema(self.schema), None)
        assert not file.read(1)
        return plain(made)


def plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return str(value) if isinstance(value, UUID) else value


def encode_any(rng: random.Random, form: Form, *, in_blocks: bool = False) -> bytes:  # noqa: PLR0911 - a type each
    """Encode some value of the form. in_blocks: arrays and maps in blocks of any kind, not only in one."""

    def encode(inner: Form) -> bytes:
        return encode_any(rng, inner, in_blocks=in_blocks)

    match form.kind:
        case "record":
            return b"".join(map(encode, form.inner))
        case "optional" | "union":
            branch = rng.randrange(len(form.inner))
            return encode_long(branch) + encode(form.inner[branch])
        case "array":
            return blocks([encode(form.inner[0]) for _ in range(rng.choice((0, 1, 3)))], rng if in_blocks else None)
        case "map":
            keys = rng.sample(_TEXTS, rng.choice((0, 1, 3)))
            items = [encode_bytes(key.encode()) + encode(form.inner[0]) for key in keys]
            return blocks(items, rng if in_blocks else None)
        case "enum":
            return encode_long(rng.randrange(form.size))
        case "fixed":
            number = (
                rng.randrange(-(10**17), 10**17).to_bytes(form.size, "big", signed=True) if form.decimal[0] else b""
            )
            return number or rng.randbytes(form.size)
        case kind:
            return _encode_primitive(rng, kind, form)


def _encode_primitive(rng: random.Random, kind: str, form: Form) -> bytes:  # noqa: PLR0911 - a type each
    if form.decimal[0]:
        number = rng.choice((0, 1, -1, 100, -12_300, 10**37, rng.randrange(-(10**38) + 1, 10**38)))
        return encode_bytes(number.to_bytes((number.bit_length() + 8) >> 3, "big", signed=True))
    if form.logical == "uuid":
        return encode_bytes(str(UUID(bytes=rng.randbytes(16))).encode())
    if form.logical:
        return encode_long(rng.randrange(_LOGICAL[form.logical][1]))
    match kind:
        case "null":
            return b""
        case "boolean":
            return rng.choice((b"\0", b"\1"))
        case "int" | "long":
            return encode_long(rng.choice((*(_INT if kind == "int" else _LONG), rng.randrange(-1000, 1000))))
        case "float" | "double":
            value = rng.choice((0.0, -0.0, 1.5, float("inf"), rng.uniform(-1e6, 1e6)))
            return struct.pack("<f" if kind == "float" else "<d", value)
        case "bytes":
            return encode_bytes(rng.randbytes(rng.choice((0, 1, 7, 100))))
    return encode_bytes(rng.choice(_TEXTS).encode())


def blocks(items: list[bytes], rng: random.Random | None = None) -> bytes:
    """An array or a map: in one block, or with a generator in several, some of which say how many bytes they have."""
    if rng is None:
        return encode_long(len(items)) + b"".join(items) + END if items else END
    made = b""
    while items:
        size = rng.randint(1, len(items))
        block = b"".join(items[:size])
        made += encode_long(size) if rng.random() < 0.5 else encode_long(-size) + encode_long(len(block))
        made += block
        items = items[size:]
    return made + END

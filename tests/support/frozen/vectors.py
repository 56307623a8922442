"""Frozen vectors: what a release has written in each format that outlives a process, and what it means.

Each release has a folder tests/vectors/releases/VERSION with one JSON file for each format: a list of vectors with a
name, the bytes (as text where they are ASCII, otherwise in base64) and their meaning.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = project_root() / "tests" / "vectors" / "releases"
FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E


class Vector(NamedTuple):
    """`meaning`: JSON, made from what was written, not from what is read back."""

    name: str
    data: bytes
    meaning: Any


class Format(NamedTuple):
    """One format, or a few that belong together.

    modules: the modules that set its version. make: vectors in the present version. read: what the present code makes
    of a vector, given its name and the bytes of all the format's vectors by name.
    """

    name: str
    modules: tuple[str, ...]
    make: Callable[[], Sequence[Vector]]
    read: Callable[[str, Mapping[str, bytes]], Any]


def write_vectors(file: Path, vectors: Sequence[Vector]) -> None:
    entries = [{"name": name, **_packed(data), "meaning": meaning} for name, data, meaning in vectors]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    file.write_text(f"[\n{lines}\n]\n")


def read_vectors(file: Path) -> list[Vector]:
    return [Vector(entry["name"], _unpacked(entry), entry["meaning"]) for entry in json.loads(file.read_text())]


def plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value of the programs as JSON: bytes in hexadecimal, named fields as objects, sets sorted."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {_key(name): plain(item) for name, item in value.items()}
    if isinstance(value, AbstractSet | list | tuple):
        found = list(map(plain, value))
        return sorted(found) if isinstance(value, AbstractSet) else found
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def differences(recorded: Any, found: Any, where: str = "") -> list[str]:  # noqa: ANN401 - JSON
    """Return where `found` is not what was recorded. Fields that it has besides are later ones."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        missing = [f"{where}.{name} is missing" for name in recorded if name not in found]
        shared = [name for name in recorded if name in found]
        return missing + [
            line for name in shared for line in differences(recorded[name], found[name], f"{where}.{name}")
        ]
    if isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = enumerate(zip(recorded, found, strict=True))
        return [line for at, pair in pairs for line in differences(*pair, f"{where}[{at}]")]
    return [] if recorded == found else [f"{where or 'it'} is {found!r}, recorded was {recorded!r}"]


def _key(name: object) -> str:
    return name.hex() if isinstance(name, bytes) else str(name)


def _packed(data: bytes) -> dict[str, str]:
    if all(FIRST_PRINTABLE <= byte <= LAST_PRINTABLE for byte in data):
        return {"text": data.decode("ascii")}
    return {"base64": b64encode(data).decode("ascii")}


def _unpacked(entry: Mapping[str, str]) -> bytes:
    return entry["text"].encode("ascii") if "text" in entry else b64decode(entry["base64"], validate=True)


def hosts(*numbers: int) -> tuple[bytes, ...]:
    """Host ids of examples."""
    return tuple(UUID(int=number).bytes for number in numbers)

"""The rooms of the native core: their arrows point down. import-linter does not read Cython."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cdc_native

PACKAGE = Path(cdc_native.__file__).parent
BELOW = {
    "formats": set(),
    "kafka": {"formats"},
    "avro": {"formats", "kafka"},
    "fold": {"formats", "kafka"},
}
"""The rooms that a room may import."""
SOURCES = sorted(path for kind in ("pyx", "pxd", "pyi") for path in PACKAGE.rglob(f"*.{kind}"))
OURS = re.compile(r"^\s*(?:from|c?import) cdc_native\.(\w+)", re.MULTILINE)


def test_these_are_the_rooms() -> None:
    assert {path.parent.name for path in SOURCES} == BELOW.keys()
    assert {path.parent.parent for path in SOURCES} == {PACKAGE}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_room_imports_only_rooms_below_it(source: Path) -> None:
    room = source.parent.name
    assert set(OURS.findall(source.read_text())) <= BELOW[room] | {room}

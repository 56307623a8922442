"""The rooms of the native core: their arrows point down. import-linter does not read Cython.

Each module names what its results equal, and the constants that it shares with the Python code come from there.
"""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

import cdc_native
from dev.tools.reference.native_constants import native_constants

PACKAGE = Path(cdc_native.__file__).parent
BELOW = {
    "formats": set(),
    "avro": {"formats"},
    "kafka": {"formats", "avro", "fold"},
    "fold": {"formats"},
    "joins": {"formats", "avro"},
}
"""The rooms that a room may import."""
SOURCES = sorted(path for kind in ("pyx", "pxd", "pyi") for path in PACKAGE.rglob(f"*.{kind}"))
ORACLE = re.compile(r"^Python oracle: (.+)\.$", re.MULTILINE)
OURS = re.compile(r"^\s*(?:from|c?import) cdc_native\.(\w+)", re.MULTILINE)


def test_these_are_the_rooms() -> None:
    assert {path.parent.name for path in SOURCES} == BELOW.keys()
    assert {path.parent.parent for path in SOURCES} == {PACKAGE}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_room_imports_only_rooms_below_it(source: Path) -> None:
    room = source.parent.name
    assert set(OURS.findall(source.read_text())) <= BELOW[room] | {room}


@pytest.mark.parametrize("source", sorted(PACKAGE.rglob("*.pyx")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_module_names_its_python_oracle(source: Path) -> None:
    _, docstring, _ = source.read_text().split('"""', 2)
    [names] = ORACLE.findall(docstring)
    for name in names.split(", "):
        assert pkgutil.resolve_name(name) is not None


def test_the_shared_constants_are_the_python_codes() -> None:
    """If not: `make docs-reference`, and compile again."""
    assert (PACKAGE / "formats" / "constants.pxd").read_text() == native_constants()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_shared_constant_is_defined_once(source: Path) -> None:
    shared = dict(re.findall(r"^    ([A-Z_]+) = (\d+)$", native_constants(), re.MULTILINE))
    own = re.findall(r"^    _?([A-Z_]+) = ", source.read_text(), re.MULTILINE)
    assert source.name == "constants.pxd" or not shared.keys() & set(own)

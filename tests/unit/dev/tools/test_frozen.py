"""The present code reads all that every release has written, with the meaning that was recorded then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError
from cdc_common.messages.errors import MessageError
from cdc_common.messages.wire import HEADER_SIZE
from dev.local_stack.process.paths import project_root
from dev.tools.distribution import read_project
from tests.support.frozen.formats import FORMATS
from tests.support.frozen.vectors import RELEASES, differences, read_vectors

if TYPE_CHECKING:
    from pathlib import Path

BY_NAME = {form.name: form for form in FORMATS}
FILES = sorted(RELEASES.glob("*/*.json"))
LARGEST = 300 * 1024  # bytes of one release
SETS_A_VERSION = re.compile(r"^(?:FORMAT|MANIFEST)_VERSION = ", re.MULTILINE)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_vectors_of_each_release_are_read_as_they_were_meant(file: Path) -> None:
    vectors = read_vectors(file)
    data = {vector.name: vector.data for vector in vectors}
    read = BY_NAME[file.stem].read
    wrong = {vector.name: differences(vector.meaning, read(vector.name, data)) for vector in vectors}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_present_version_is_frozen_with_everything_that_it_writes() -> None:
    """If not: make freeze (again: python -m dev.tools.freeze --again, for a version that is not released)."""
    folder = RELEASES / read_project().version
    for form in FORMATS:
        frozen = {vector.name for vector in read_vectors(folder / f"{form.name}.json")}
        assert {vector.name for vector in form.make()} <= frozen


def test_each_release_is_small() -> None:
    for folder in RELEASES.iterdir():
        assert sum(file.stat().st_size for file in folder.iterdir()) < LARGEST


def test_each_module_that_sets_a_format_version_has_vectors() -> None:
    root = project_root()
    programs = ("filler", "joinery", "materializer", "publisher", "schematizer", "stream_runtime", "transformer")
    packages = ("cassandra_storage/formats/json_forms", "cdc_common", *programs)
    files = [file for package in packages for file in (root / package).rglob("*.py")]
    found = {str(file.relative_to(root)) for file in files if SETS_A_VERSION.search(file.read_text())}
    assert found
    assert found == {module for form in FORMATS for module in form.modules}


def test_a_changed_meaning_is_found() -> None:
    recorded = {"a": [1, {"b": 2}], "c": None}
    assert differences(recorded, {"a": [1, {"b": 2}], "c": None, "later": 1}) == []
    assert len(differences(recorded, {"a": [1, {"b": 3}]})) == 2
    assert differences(recorded, {**recorded, "a": [1]}) != []


NEWER = {
    ("raw-messages", "row"): lambda data: data[:HEADER_SIZE] + b"\x62" + data[HEADER_SIZE + 1 :],  # 49, zigzag
    ("state-values", "facts"): lambda data: b"\x63" + data[1:],
    ("positions", "committed"): lambda data: data.replace(b'"format":1', b'"format":99'),
    ("publisher-files", "position"): lambda data: data.replace(b'"format_version":1', b'"format_version":99'),
    ("checkpoint-files", "topics"): lambda data: data.replace(b'"format":1', b'"format":99'),
}


@pytest.mark.parametrize(("format_name", "name"), NEWER)
def test_what_a_newer_version_has_written_is_refused(format_name: str, name: str) -> None:
    vectors = read_vectors(RELEASES / read_project().version / f"{format_name}.json")
    [data] = [vector.data for vector in vectors if vector.name == name]
    newer = NEWER[format_name, name](data)
    assert newer != data
    with pytest.raises((CdcError, MessageError), match=r"version|99|49"):
        BY_NAME[format_name].read(name, {name: newer})

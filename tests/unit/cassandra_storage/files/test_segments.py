"""Segments as files of a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.files.segments import OpenSegment, list_segments, read_descriptor_of, read_segment
from cassandra_storage.formats.commitlog.descriptor import CdcIndex
from cassandra_storage.formats.commitlog.segment import CommitLogEntry, CorruptEntry
from cassandra_storage.formats.errors import FormatError, UnsupportedError
from tests.support.cassandra_storage.files.coded import CODECS, FORMS, Form
from tests.support.cassandra_storage.segment_builder import NAME, SEGMENT_ID, descriptor, segment

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = [[b"first entry", b"second entry"], [b"x" * 300_000, b"third entry"]]
MUTATIONS = [mutation for section in SECTIONS for mutation in section]


def test_a_folder(tmp_path: Path) -> None:
    for name in ("CommitLog-7-20.log", "CommitLog-8-3.log", "CommitLog-6-100.log", "CommitLog-7-20_cdc.idx", "x.log"):
        (tmp_path / name).touch()
    assert [(file.version, file.id) for file in list_segments(tmp_path)] == [(8, 3), (7, 20), (6, 100)]


def test_indexes(tmp_path: Path) -> None:
    for version in (6, 7, 9):
        (tmp_path / f"CommitLog-{version}-{version}.log").write_bytes(b"123456")
    of_311, of_40, unknown = list_segments(tmp_path)
    assert of_311.read_index() == CdcIndex(6, is_completed=True)  # replayed perhaps, as its number says
    assert of_40.read_index() is None
    of_40.index_path.write_text("5")
    assert of_40.read_index() == CdcIndex(5, is_completed=False)
    of_40.index_path.write_text("no number")
    with pytest.raises(FormatError):
        of_40.read_index()
    with pytest.raises(UnsupportedError):
        unknown.read_index()


def test_left_behind(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.touch()
    (file,) = list_segments(tmp_path)
    own_link = tmp_path / "commitlog"
    own_link.hardlink_to(path)
    assert not file.is_left_behind()
    own_link.unlink()
    assert file.is_left_behind()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_whole_segment(tmp_path: Path, form: Form) -> None:
    path = tmp_path / NAME
    path.write_bytes(form.segment(SECTIONS))
    events = list(read_segment(path, CODECS))
    assert [event.mutation for event in events if isinstance(event, CommitLogEntry)] == MUTATIONS
    said = read_descriptor_of(path)
    assert said is not None
    assert (said.id, said.compression) == (SEGMENT_ID, form.parameters.get("compressionClass"))
    assert (said.encryption is None) is (form.name != "encrypted")


def test_no_descriptor_yet(tmp_path: Path) -> None:
    path = tmp_path / NAME
    for content in (b"", bytes(1000), descriptor()[:-1]):
        path.write_bytes(content)
        assert read_descriptor_of(path) is None


def test_a_file_that_becomes_shorter(tmp_path: Path) -> None:
    """Cassandra never does that to a commit log; it is reported, and reading ends."""
    path = tmp_path / NAME
    data = segment(SECTIONS)
    path.write_bytes(data)
    opened = OpenSegment(path)
    events = opened.events()
    assert isinstance(next(events), CommitLogEntry)
    os.truncate(path, len(data) - 100)
    *_, last = events
    assert isinstance(last, CorruptEntry)
    assert opened.is_ended

"""The fill level of a segment is known from its sync markers alone: real segments, growing and complete."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from cdc_common.errors.codes import CdcError, Code
from filler.segments import folder_bytes, newest_fill
from tests.support.vectors.load import load

SEGMENT = load("5.0").segments[0]
END = SEGMENT.entries()[-1].end_position


def test_a_whole_segment_is_full_up_to_its_last_entry(tmp_path: Path) -> None:
    (tmp_path / SEGMENT.name).write_bytes(SEGMENT.data)
    fill = newest_fill(tmp_path, None)
    assert fill is not None
    assert fill.written == END
    assert newest_fill(tmp_path, fill) == fill


def test_it_goes_on_from_where_it_was(tmp_path: Path) -> None:
    """A live segment is zeroes after what was synced."""
    path = tmp_path / SEGMENT.name
    fill, seen = None, set()
    for size in range(0, len(SEGMENT.data), 50_000):
        path.write_bytes(SEGMENT.data[:size].ljust(len(SEGMENT.data), b"\0"))
        grown = newest_fill(tmp_path, fill)
        assert grown == newest_fill(tmp_path, None)
        fill = grown
        seen.add(fill.written if fill else 0)
    assert len(seen) > 2
    assert max(seen) <= END


def test_the_one_made_ahead_is_not_the_newest(tmp_path: Path) -> None:
    (tmp_path / SEGMENT.name).write_bytes(SEGMENT.data)
    (tmp_path / "CommitLog-7-9999999999999.log").write_bytes(bytes(1 << 20))
    (tmp_path / "CommitLog-7-9999999999999_cdc.idx").touch()
    fill = newest_fill(tmp_path, None)
    assert fill is not None
    assert fill.file.path.name == SEGMENT.name
    assert folder_bytes(tmp_path) == len(SEGMENT.data) + (1 << 20)


def test_an_empty_folder_has_none_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert newest_fill(tmp_path, None) is None
    shutil.rmtree(tmp_path)
    for read in (folder_bytes, lambda folder: newest_fill(folder, None)):
        with pytest.raises(CdcError) as caught:
            read(tmp_path)
        assert caught.value.code is Code.CDC_RAW_MISSING


def test_a_segment_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised by hand, as root may read everything."""

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / SEGMENT.name).write_bytes(SEGMENT.data)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CdcError, match=f"{SEGMENT.name} cannot be read: Permission denied") as caught:
        newest_fill(tmp_path, None)
    assert caught.value.code is Code.CDC_RAW_MISSING

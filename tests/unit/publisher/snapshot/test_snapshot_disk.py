"""The disk of a node while a snapshot links its SSTables."""

from __future__ import annotations

import shutil
from collections import namedtuple
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.files.sstables import SSTableFile
from cassandra_storage.formats.sstable.file_name import parse_name
from publisher.snapshot.connections.disk import DiskSpace, linked_only_here

if TYPE_CHECKING:
    from pathlib import Path

Usage = namedtuple("Usage", "total free")  # noqa: PYI024 - as shutil's


@pytest.mark.parametrize(("free", "shortage"), [(101, ""), (100, ""), (99, "less than 10 % of the disk of {} is free")])
def test_each_file_system_needs_its_share(
    free: int, shortage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(1000, free if folder == other else 900))
    space = DiskSpace([one, other], 10)
    assert space.shortage() == shortage.format(other)
    assert space.shortage(1.0) == f"less than 11 % of the disk of {other} is free"
    assert not DiskSpace([one, other], 0).shortage()


def test_a_file_that_compaction_has_replaced_is_kept_by_its_link_alone(tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    files = []
    for number, size in ((1, 10), (2, 300)):
        name = f"nb-{number}-big-Data.db"
        (tmp_path / name).write_bytes(bytes(size))
        (links / name).hardlink_to(tmp_path / name)
        files.append(SSTableFile(links, parse_name(name)[0]))
    assert linked_only_here(files) == 0
    (tmp_path / "nb-2-big-Data.db").unlink()
    assert linked_only_here(files) == 300

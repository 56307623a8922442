"""The descriptor of a segment, the names of its files, and its `_cdc.idx`."""

from __future__ import annotations

import pytest

from cassandra_storage.formats.commitlog.descriptor import (
    CdcIndex,
    CommitLogDescriptor,
    index_file_name,
    parse_cdc_index,
    parse_file_name,
    read_descriptor,
)
from cassandra_storage.formats.commitlog.segment import (
    CommitLogPosition,
)
from cassandra_storage.formats.errors import FormatError
from tests.support.cassandra_storage.segment_builder import NAME, SEGMENT_ID, descriptor

HEADER_SIZE = len(descriptor())


def test_descriptor() -> None:
    for version, messaging_version in ((6, 11), (7, 12), (8, 13)):
        expected = CommitLogDescriptor(version, SEGMENT_ID, messaging_version, HEADER_SIZE)
        assert read_descriptor(descriptor(version)) == expected
    for size in range(HEADER_SIZE):
        assert read_descriptor(descriptor()[:size]) is None
    assert read_descriptor(bytes(100)) is None  # a file that was only just made


@pytest.mark.parametrize(
    ("content", "index"),
    [
        (b"", None),
        (b"\n", None),
        (b"123", CdcIndex(123, is_completed=False)),
        (b"123\n", CdcIndex(123, is_completed=False)),
        (b"123\nCOMP", CdcIndex(123, is_completed=False)),
        (b"123\nCOMPLETED", CdcIndex(123, is_completed=True)),
        (b"123\nCOMPLETED\n", CdcIndex(123, is_completed=True)),
    ],
)
def test_cdc_index(content: bytes, index: CdcIndex | None) -> None:
    assert parse_cdc_index(content) == index


@pytest.mark.parametrize("content", [b"x", b"-1", b"1 2", b"1\nOTHER", b"99999999999", b"\xff"])
def test_not_a_cdc_index(content: bytes) -> None:
    with pytest.raises(FormatError):
        parse_cdc_index(content)


def test_names_and_positions() -> None:
    assert parse_file_name(NAME) == (7, SEGMENT_ID)
    assert index_file_name(NAME) == f"CommitLog-7-{SEGMENT_ID}_cdc.idx"
    for name in ("CommitLog-7.log", "CommitLog-7-1_cdc.idx", "x", f"/{NAME}"):
        with pytest.raises(FormatError):
            parse_file_name(name)
    assert CommitLogPosition(1, 5) < CommitLogPosition(1, 6) < CommitLogPosition(2, 0)

"""`verify` and `info` of sound, damaged and unfinished segments, and what their exit status says."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cassandra_storage.commands.commitlog.cli import group
from cassandra_storage.formats.commitlog.descriptor import index_file_name
from tests.support.cassandra_storage.commitlog.fixtures import CdcRaw, commitlog, json_lines
from tests.support.cassandra_storage.segment_builder import NAME, descriptor, entry, segment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.vectors.load import Segment

# Mutations of an unknown table.
ONE = b"\x01" + b"a table's id....and more"
TWO = b"\x01" + b"another's id....and more"


def write(folder: Path, data: bytes, index: str | None = None, name: str = NAME) -> Path:
    (folder / name).write_bytes(data)
    if index is not None:
        (folder / index_file_name(name)).write_text(index)
    return folder / name


def completed(cdc_raw: CdcRaw) -> Segment:
    """A vector that is finished; the newest of its folder is none."""
    return next(segment for segment in cdc_raw.vectors.segments if segment.cdc_index.is_completed)


def test_what_a_node_left_is_sound(cdc_raw: CdcRaw) -> None:
    result = commitlog("verify", cdc_raw.folder)
    count = sum(len(segment.entries()) for segment in cdc_raw.vectors.segments)
    assert result.stdout.endswith(f", {count} mutations decoded, 0 of unknown tables or columns, 0 problems\n")


def test_info_counts_what_is_there(cdc_raw: CdcRaw) -> None:
    by_name = {facts["segment"]: facts for facts in json_lines(commitlog("info", "--json", cdc_raw.folder))}
    for real in cdc_raw.vectors.segments:
        facts, entries = by_name[real.name], real.entries()
        assert facts["entries"] == len(entries)
        assert facts["unknown"] == 0
        # Each mutation is a byte for the number of its updates, and they.
        assert sum(table["bytes"] for table in facts["tables"].values()) == sum(len(e.mutation) - 1 for e in entries)
        assert facts["ending"]["kind"] in {"zero marker", "end of file"}
        assert facts["index"] == (
            "COMPLETED" if real.cdc_index.is_completed else f"durable up to {real.cdc_index.offset}"
        )
        assert facts["min_timestamp"] < facts["max_timestamp"]
    text = commitlog("info", cdc_raw.folder).stdout
    for expected in ("written by Cassandra", "vectors.wide", "system_schema.columns", "COMPLETED"):
        assert expected in text


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_flipped_bit_is_a_problem_at_its_place(cdc_raw: CdcRaw, tmp_path: Path, at: float) -> None:
    sound = completed(cdc_raw)
    entries = sound.entries()
    flipped = entries[int(len(entries) * at)]
    data = bytearray(sound.data)
    data[flipped.end_position - 6] ^= 0x10  # in the mutation's last bytes
    file = write(tmp_path, bytes(data), "1\nCOMPLETED", sound.name)
    result = commitlog("verify", tmp_path, status=1)
    assert f"{file}:{flipped.position}: bad mutation CRC" in result.stdout
    assert f" {len(entries) - 1} mutations decoded" in result.stdout
    dumped = commitlog("dump", tmp_path, status=1)
    assert len(json_lines(dumped)) == len(entries) - 1
    assert f"{file}:{flipped.position}: bad mutation CRC" in dumped.stderr


def test_no_flipped_bit_loses_a_mutation_unnoticed(tmp_path: Path) -> None:
    """No checksum covers where a section ends: the last one may reach into the zeroes, which loses nothing."""
    data = segment([[ONE], [TWO, ONE], [TWO]])
    file = write(tmp_path, data + bytes(64), "1\nCOMPLETED")
    all_read = commitlog("verify", tmp_path).stdout
    assert "4 of unknown tables or columns, 0 problems" in all_read
    unnoticed = set()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x01
        write(tmp_path, bytes(damaged) + bytes(64))
        result = CliRunner().invoke(group, ["verify", str(file)])
        assert result.exit_code == 1 or result.stdout == all_read
        if result.exit_code == 0:
            unnoticed.add(position)
    assert unnoticed <= {len(data) - len(entry(TWO)) - 5}


def test_what_was_not_synced_is_told_and_no_problem(tmp_path: Path) -> None:
    data = segment([[ONE]]) + bytes(8)
    file = write(tmp_path, data + entry(b"not after any marker") + bytes(64))
    result = commitlog("verify", tmp_path)
    assert f"note: {file}:{len(data) + 3}: bytes after the end" in result.stdout


@pytest.mark.parametrize("index", [None, "64\n"])
def test_a_torn_tail_of_the_newest_segment_is_no_problem(cdc_raw: CdcRaw, tmp_path: Path, index: str | None) -> None:
    sound = completed(cdc_raw)
    cut = sound.entries()[-1].end_position - 5
    file = write(tmp_path, sound.data[:cut], index, sound.name)
    result = commitlog("verify", tmp_path)
    assert f"note: {file}:" in result.stdout
    assert "torn tail" in result.stdout
    [facts] = json_lines(commitlog("info", "--json", tmp_path))
    assert facts["ending"]["kind"] == "torn tail"


def test_a_torn_tail_elsewhere_is_a_problem(cdc_raw: CdcRaw, tmp_path: Path) -> None:
    sound = completed(cdc_raw)
    data = sound.data[: sound.entries()[-1].end_position - 5]
    file = write(tmp_path, data, "64\nCOMPLETED", sound.name)
    assert f"{file}:" in commitlog("verify", tmp_path, status=1).stdout
    file.with_name(index_file_name(file.name)).unlink()
    shutil.copy(cdc_raw.folder / cdc_raw.vectors.segments[-1].name, tmp_path)
    assert f"{file}:" in commitlog("verify", tmp_path, status=1).stdout


def test_the_segment_made_ahead_is_not_the_newest(cdc_raw: CdcRaw, tmp_path: Path) -> None:
    sound = completed(cdc_raw)
    write(tmp_path, sound.data[: sound.entries()[-1].end_position - 5], None, sound.name)
    write(tmp_path, bytes(1000), None, "CommitLog-7-9999999999998.log")
    write(tmp_path, descriptor(segment_id=9999999999999) + bytes(1000), None, "CommitLog-7-9999999999999.log")
    assert "note: " in commitlog("verify", tmp_path).stdout


def test_a_marker_that_is_damaged_is_never_a_torn_tail(tmp_path: Path) -> None:
    data = bytearray(segment([[b"the first entry"], [b"the second"]]))
    data[data.index(b"the second") - 9] ^= 1  # its marker's CRC
    write(tmp_path, bytes(data))
    assert "bad sync marker" in commitlog("verify", tmp_path, status=1).stdout


def test_a_segment_that_is_not_begun(tmp_path: Path) -> None:
    for data in (b"", bytes(4096), segment([]) + bytes(100)):
        write(tmp_path, data)
        assert commitlog("verify", tmp_path).stdout.endswith("0 problems\n")


def test_a_mutation_that_is_none(tmp_path: Path) -> None:
    file = write(tmp_path, segment([[b"\x00 no mutation"]]))
    result = commitlog("verify", tmp_path, status=1)
    assert f"{file}:28: unreadable mutation: mutation of 0 updates" in result.stdout


def test_a_descriptor_or_an_index_that_cannot_be_read(tmp_path: Path) -> None:
    data = bytearray(segment([[b"the first entry"]]))
    data[17] ^= 1
    file = write(tmp_path, bytes(data), "not a number")
    result = commitlog("verify", tmp_path, status=1)
    assert f"{file}:0: segment descriptor with a wrong CRC" in result.stdout
    assert "_cdc.idx:0: not a _cdc.idx file" in result.stdout
    assert "problem at 0" in commitlog("info", tmp_path).stdout


def test_a_large_damaged_segment_has_few_words(tmp_path: Path) -> None:
    data = segment([[b"\x00 no mutation"] * 1000])
    write(tmp_path, data)
    [facts] = json_lines(commitlog("info", "--json", tmp_path))
    assert len(facts["problems"]) + facts["more_problems"] == 1000
    assert len(facts["problems"]) == 100


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["verify", "nowhere"],
        ["verify", "empty"],
        ["verify", "other.log"],
        ["dump", "--schema", "other.log", NAME],
        ["dump", "--from", "x", NAME],
        ["dump", "--to", "1:2:3", NAME],
    ],
)
def test_a_wrong_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.log").write_text("{")
    write(tmp_path, segment([]))
    folder_without = tmp_path / "empty"
    folder_without.mkdir()
    assert "Usage:" in commitlog(*arguments, status=2).stderr

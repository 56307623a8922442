"""Files that the publisher may not read, and folders that are not there: the error names the file and its setting."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest

from cdc_common.clients.cassandra import Node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import NodeSettings
from publisher import app, state_files
from publisher.log.cdc_raw import open_codecs
from publisher.log.position import Positions
from publisher.log.tail import SegmentTails
from publisher.monitoring.status_collector import segment_sizes
from publisher.settings import PublisherSettings
from tests.support.publisher.segment_files import SegmentFileBuilder, mutation

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENT = 1_700_000_000_000


def refuse(path: str | Path, monkeypatch: pytest.MonkeyPatch, reason: int = errno.EACCES) -> None:
    """Opening this file fails, as for a user without the right (root has it)."""
    os_open, path_open = os.open, Path.open

    def is_refused(opened: object) -> bool:
        return Path(cast("Any", opened)).name == Path(path).name

    def checked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(opened: object, *arguments: object, **named: object) -> object:
            if is_refused(opened):
                raise OSError(reason, os.strerror(reason), str(opened))
            return function(opened, *arguments, **named)

        return call

    monkeypatch.setattr(os, "open", checked(os_open))
    monkeypatch.setattr(Path, "open", checked(path_open))
    monkeypatch.setattr(Path, "read_bytes", checked(Path.read_bytes))


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    builder = SegmentFileBuilder(tmp_path, SEGMENT, size=20_000)
    builder.append(mutation(1))
    builder.sync(complete=True)
    [found] = tmp_path.glob("*.log")
    return found


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EIO])
@pytest.mark.parametrize("is_index", [False, True])
def test_a_segment_that_may_not_be_read_is_named(
    log_file: Path, monkeypatch: pytest.MonkeyPatch, reason: int, *, is_index: bool
) -> None:
    refused = log_file.with_name(log_file.name.replace(".log", "_cdc.idx")) if is_index else log_file
    tails = SegmentTails(log_file.parent, Positions(log_file.with_name("position.json"), UUID(int=1)))
    refuse(refused, monkeypatch, reason)
    with pytest.raises(CdcError, match=refused.name) as caught:
        [list(tail.entries()) for tail in tails.poll()]
    assert caught.value.code is Code.CDC_RAW_MISSING
    assert os.strerror(reason) in caught.value.problem


def test_a_first_start_beside_segments_that_may_not_be_read_says_so(
    log_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(log_file, monkeypatch)
    with pytest.raises(CdcError, match="Permission denied") as caught:
        open_codecs(PublisherSettings(), log_file.parent)
    assert caught.value.code is Code.CDC_RAW_MISSING
    assert "group" in caught.value.fix


def test_a_missing_commit_log_names_its_own_setting(tmp_path: Path) -> None:
    settings = NodeSettings(cdc_raw_directory=tmp_path, commitlog_directory=tmp_path / "missing")
    watch = cast("Any", type("Watch", (), {"node": Node(UUID(int=1), "test", "cdc", "3.11.19")}))
    asked: list[Callable[[], object]] = [
        lambda: segment_sizes(tmp_path, settings.commitlog_directory, 1),
        lambda: app._newest_segment(settings, watch),
    ]
    for ask in asked:
        with pytest.raises(CdcError, match="missing") as caught:
            ask()
        assert caught.value.fix.startswith("Set node.commitlog_directory to the node's commitlog_directory")


def test_no_file_but_the_position_may_be_removed(tmp_path: Path) -> None:
    """A quarantined mutation that cannot be read may be the only copy of a change."""
    file = tmp_path / "00000000000000000007-0000001234.json"
    file.write_text('{"format_version": 99}')
    with pytest.raises(CdcError, match=file.name) as caught:
        state_files.read(file)
    assert "Of all files only position.json can be removed" in caught.value.fix

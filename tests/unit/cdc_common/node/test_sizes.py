"""The sizes are those that the node reports, otherwise those of the settings, or Cassandra's default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.sizes import MIB, node_sizes
from cdc_common.settings import NodeSettings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("reported", "given", "total", "segment"),
    [
        ({"cdc_total_space": "4096MiB", "commitlog_segment_size": "32MiB"}, (0, 32), 4096 * MIB, 32 * MIB),
        ({"cdc_total_space_in_mb": "128", "commitlog_segment_size_in_mb": "1"}, (7, 8), 128 * MIB, MIB),
        ({"cdc_total_space": "1GiB"}, (0, 32), 1024 * MIB, 32 * MIB),
        (None, (64, 1), 64 * MIB, MIB),
    ],
)
def test_the_sizes_are_what_the_node_or_the_settings_say(
    reported: dict[str, str] | None, given: tuple[int, int], total: int, segment: int
) -> None:
    settings = NodeSettings(cdc_total_space_mib=given[0], commitlog_segment_mib=given[1])
    assert node_sizes(reported, settings) == (total, segment, False)


def test_without_either_cassandras_default_is_assumed(tmp_path: Path) -> None:
    found = node_sizes(None, NodeSettings(cdc_raw_directory=tmp_path))
    assert found.is_default
    assert 0 < found.cdc_total <= 4096 * MIB


def test_the_default_needs_the_directory(tmp_path: Path) -> None:
    with pytest.raises(CdcError) as caught:
        node_sizes(None, NodeSettings(cdc_raw_directory=tmp_path / "none"))
    assert caught.value.code is Code.CDC_RAW_MISSING

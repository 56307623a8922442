"""How much the consumers of a process read ahead."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from cdc_common.settings import KafkaSettings
from stream_runtime.kafka.source_reader import SourceReader

MIB = 1 << 20


@pytest.mark.parametrize(("readers", "mebibytes"), [(1, 16), (2, 16), (16, 2), (32, 1), (1000, 0.25)])
def test_consumers_share_what_is_read_ahead(readers: int, mebibytes: float) -> None:
    with patch("stream_runtime.kafka.source_reader.open_consumer") as opened:
        SourceReader(KafkaSettings(), "group", readers=readers)
    properties = opened.call_args.args[0]
    assert properties["queued.max.messages.kbytes"] == pytest.approx(mebibytes * 1024, rel=0.01)
    assert properties["queued.min.messages"] <= mebibytes * MIB / 400 * 1.01
    assert MIB <= properties["fetch.max.bytes"] <= 8 * MIB
    assert properties["max.partition.fetch.bytes"] == pytest.approx(min(1, mebibytes / 2) * MIB, rel=0.01)

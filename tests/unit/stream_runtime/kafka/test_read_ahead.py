"""How much the consumers of a process read ahead."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from cdc_common.settings import KafkaSettings
from stream_runtime.kafka.source_reader import SourceReader

MIB = 1 << 20


@pytest.mark.parametrize(("readers", "each"), [(1, 16), (4, 16), (16, 4), (40, 1.6), (1000, 1)])
def test_consumers_share_what_is_read_ahead(readers: int, each: float) -> None:
    with patch("stream_runtime.kafka.source_reader._open_consumer") as opened:
        SourceReader(KafkaSettings(), "group", readers=readers)
    properties = opened.call_args.args[0]
    assert properties["queued.max.messages.kbytes"] == int(each * 1024)
    assert properties["queued.min.messages"] <= each * MIB / 100
    assert MIB <= properties["fetch.max.bytes"] <= 8 * MIB

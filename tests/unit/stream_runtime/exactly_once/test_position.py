"""A committed offset's metadata: only what this program wrote, for that very offset, is taken."""

from __future__ import annotations

import json

import pytest

from cdc_common.errors.codes import CdcError, Code
from materializer.command_marks import RESHARDING
from materializer.errors import RAW_FAULTS
from materializer.records import RawPartition
from stream_runtime.exactly_once import position as position_module
from stream_runtime.exactly_once.position import FORMAT_VERSION, Position, check_topic, decode, encode
from stream_runtime.exactly_once.rest import MOST_HOSTS
from stream_runtime.records import Rest, TopicShape

WHERE = RawPartition("cdc.raw.shop.orders", 3)
POSITION = Position(77, "0000000004-0badcafe", 8)
RESTING = POSITION._replace(rest=Rest(5000, None, frozenset({1, 2**32 - 1}), 2**32 - 1))
RESHARDED = POSITION._replace(reshards=2, in_progress=(70, 90))
OWN = f'"format":{FORMAT_VERSION}'


def test_is_read_as_it_was_written() -> None:
    for position in (
        POSITION,
        RESHARDED,
        RESHARDED._replace(in_progress=RESHARDING),
        RESHARDED._replace(in_progress=None),
        RESTING,
        RESTING._replace(busy=(17, 5000)),
        POSITION._replace(rest=Rest(None, 0, frozenset(), 0)),
    ):
        assert decode(77, encode(position), WHERE, RAW_FAULTS) == position


def test_every_position_has_the_one_format() -> None:
    assert FORMAT_VERSION == 1
    assert OWN in encode(POSITION)
    assert OWN in encode(POSITION._replace(in_progress=RESHARDING))
    assert OWN in encode(POSITION._replace(reshards=1))


@pytest.mark.parametrize(
    ("offset", "metadata"),
    [(77, ""), (77, None), (78, encode(POSITION)), (77, "other"), (77, "[1]"), (77, '{"format":1}'), (77, "7")],
)
def test_an_offset_set_by_others_stops(offset: int, metadata: str | None) -> None:
    with pytest.raises(CdcError) as raised:
        decode(offset, metadata, WHERE, RAW_FAULTS)
    assert raised.value.code is Code.STATE_MISMATCH
    assert "cdc.raw.shop.orders-3" in raised.value.problem


def test_the_format_before_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_module, "FORMAT_VERSION", FORMAT_VERSION + 1)
    assert decode(77, encode(RESHARDED).replace(f'"format":{FORMAT_VERSION + 1}', OWN), WHERE, RAW_FAULTS) == RESHARDED


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(CdcError) as raised:
        decode(77, encode(RESHARDED).replace(OWN, f'"format":{FORMAT_VERSION + 1}'), WHERE, RAW_FAULTS)
    assert raised.value.code is Code.STATE_FORMAT


def test_a_format_before_the_former_one_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = encode(RESHARDED)
    monkeypatch.setattr(position_module, "FORMAT_VERSION", FORMAT_VERSION + 2)
    for old in (metadata, metadata.replace(OWN, '"format":0')):
        with pytest.raises(CdcError, match="this build reads versions 2 and 3") as raised:
            decode(77, old, WHERE, RAW_FAULTS)
        assert raised.value.code is Code.STATE_FORMAT


def test_what_the_topic_has_become_is_compared() -> None:
    position = Position(7, "v", 8, "id")
    check_topic(position, TopicShape(8, "id"), WHERE, RAW_FAULTS)
    check_topic(position._replace(topic_id=""), TopicShape(8, "id"), WHERE, RAW_FAULTS)
    for partitions, topic_id, where, code in (
        (9, "id", WHERE, Code.RAW_PARTITIONS_CHANGED),
        (8, "other", WHERE, Code.STATE_MISMATCH),
        (8, "id", RawPartition(WHERE.topic, 8), Code.RAW_PARTITIONS_CHANGED),
    ):
        with pytest.raises(CdcError) as raised:
            check_topic(position, TopicShape(partitions, topic_id), where, RAW_FAULTS)
        assert raised.value.code is code
    for in_progress in (RESHARDING, (0, 7)):
        with pytest.raises(CdcError, match="has begun") as raised:
            check_topic(position._replace(in_progress=in_progress), TopicShape(8, "id"), WHERE, RAW_FAULTS)
        assert raised.value.code is Code.RAW_PARTITIONS_CHANGED
        assert "state reshard shop.orders" in raised.value.fix


def test_more_partitions_can_be_resharded_and_fewer_cannot() -> None:
    assert "state reshard shop.orders" in RAW_FAULTS.partition_count_changed(WHERE.topic, 2, 3).fix
    assert "reshard" not in RAW_FAULTS.partition_count_changed(WHERE.topic, 3, 2).fix


def test_a_rest_that_is_not_there_or_does_not_fit_is_none() -> None:
    fields = json.loads(encode(RESTING))
    del fields["rest"]  # of a build that knew none
    assert decode(77, json.dumps(fields), WHERE, RAW_FAULTS) == POSITION
    many = RESTING._replace(rest=Rest(None, None, frozenset(range(MOST_HOSTS + 1)), 0))
    assert decode(77, encode(many), WHERE, RAW_FAULTS) == POSITION
    most = RESTING._replace(rest=Rest(2**62, 2**62, frozenset(range(2**31, 2**31 + MOST_HOSTS)), 2**32 - 1))
    assert decode(77, encode(most), WHERE, RAW_FAULTS) == most
    assert len(encode(most._replace(topic_id="x" * 22))) < 4096  # offset.metadata.max.bytes
    with pytest.raises(CdcError):
        decode(77, json.dumps({**fields, "rest": [1, 2]}), WHERE, RAW_FAULTS)

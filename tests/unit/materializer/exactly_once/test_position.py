"""A committed offset's metadata: only what this program wrote, for that very offset, is taken."""

from __future__ import annotations

import pytest

from cdc_program.errors import CdcError, Code
from materializer.errors import partitions_changed
from materializer.exactly_once.position import FORMAT_VERSION, MARKED, Position, check_topic, decode, encode
from materializer.records import RawPartition

WHERE = RawPartition("cdc.raw.shop.orders", 3)
POSITION = Position(77, "0000000004-0badcafe", 8)
RESHARDED = POSITION._replace(reshards=2, backlog=(70, 90))
OWN = f'"format":{FORMAT_VERSION}'


def test_is_read_as_it_was_written() -> None:
    for position in (POSITION, RESHARDED, RESHARDED._replace(backlog=MARKED), RESHARDED._replace(backlog=None)):
        assert decode(77, encode(position), WHERE) == position


def test_only_a_reshard_takes_a_position_from_the_build_before() -> None:
    assert OWN not in encode(POSITION)
    assert OWN in encode(POSITION._replace(backlog=MARKED))
    assert OWN in encode(POSITION._replace(reshards=1))


@pytest.mark.parametrize(
    ("offset", "metadata"),
    [(77, ""), (77, None), (78, encode(POSITION)), (77, "other"), (77, "[1]"), (77, '{"format":1}'), (77, "7")],
)
def test_an_offset_set_by_others_stops(offset: int, metadata: str | None) -> None:
    with pytest.raises(CdcError) as raised:
        decode(offset, metadata, WHERE)
    assert raised.value.code is Code.STATE_MISMATCH
    assert "cdc.raw.shop.orders-3" in raised.value.problem


def test_the_format_before_is_read() -> None:
    assert decode(77, encode(RESHARDED).replace(OWN, f'"format":{FORMAT_VERSION - 1}'), WHERE) == RESHARDED


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(CdcError) as raised:
        decode(77, encode(RESHARDED).replace(OWN, f'"format":{FORMAT_VERSION + 1}'), WHERE)
    assert raised.value.code is Code.STATE_FORMAT


def test_positions_of_former_builds_are_read() -> None:
    former = '{"format":2,"offset":7,"version":"v","partitions":3}'
    assert decode(7, former, WHERE) == Position(7, "v", 3)


def test_what_the_topic_has_become_is_compared() -> None:
    position = Position(7, "v", 8, "id")
    check_topic(position, 8, "id", WHERE)
    check_topic(position._replace(topic_id=""), 8, "id", WHERE)
    for partitions, topic_id, where, code in (
        (9, "id", WHERE, Code.RAW_PARTITIONS_CHANGED),
        (8, "other", WHERE, Code.STATE_MISMATCH),
        (8, "id", RawPartition(WHERE.topic, 8), Code.RAW_PARTITIONS_CHANGED),
    ):
        with pytest.raises(CdcError) as raised:
            check_topic(position, partitions, topic_id, where)
        assert raised.value.code is code
    for backlog in (MARKED, (0, 7)):
        with pytest.raises(CdcError, match="has begun") as raised:
            check_topic(position._replace(backlog=backlog), 8, "id", WHERE)
        assert raised.value.code is Code.RAW_PARTITIONS_CHANGED
        assert "state reshard shop.orders" in raised.value.fix


def test_more_partitions_can_be_mended_and_fewer_cannot() -> None:
    assert "state reshard shop.orders" in partitions_changed(WHERE.topic, 2, 3).fix
    assert "reshard" not in partitions_changed(WHERE.topic, 3, 2).fix

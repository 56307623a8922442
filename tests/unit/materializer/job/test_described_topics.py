"""The change topics of a thousand tables are described in a few requests, and no answer serves two plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from materializer.job.described_topics import DescribedTopics
from stream_runtime.records import TopicShape

if TYPE_CHECKING:
    from collections.abc import Collection

NAMES = [f"cdc.shop.t{number}" for number in range(1000)]
AWAY = CdcError(Code.KAFKA_UNREACHABLE, "No answer.", "Wait.")


class FakeTopics:
    """The topics by name; `away` are those that cannot be described. requests: what was asked."""

    def __init__(self) -> None:
        self.shapes = {name: TopicShape(3, f"id of {name}") for name in NAMES}
        self.limits = dict.fromkeys(NAMES, 1_000_000)
        self.away: set[str] = set()
        self.requests: list[str] = []

    def each_shape(self, topics: Collection[str], /) -> dict[str, TopicShape | CdcError]:
        if topics:
            self.requests.append("shapes")
        return {name: AWAY if name in self.away else self.shapes[name] for name in topics}

    def each_max_message_bytes(self, topics: Collection[str], /) -> dict[str, int | CdcError]:
        if topics:
            self.requests.append("limits")
        return {name: AWAY if name in self.away else self.limits[name] for name in topics}

    def make_change_topic(self, topic: str, /) -> TopicShape:
        self.requests.append("make")
        self.limits.setdefault(topic, 2_000_000)
        return self.shapes.setdefault(topic, TopicShape(1, "a new id"))


@pytest.fixture
def topics() -> FakeTopics:
    return FakeTopics()


def plan(described: DescribedTopics, name: str, listed: Collection[str]) -> tuple[int, TopicShape | CdcError, int]:
    """Ask as the planner does for one table."""
    found = described.make(name), described.shapes({name}, listed)[name], described.max_message_bytes({name})
    described.forget({name})
    return found


def test_a_restart_asks_for_all_at_once(topics: FakeTopics) -> None:
    described = DescribedTopics(topics)
    described.describe(NAMES)
    for name in NAMES:
        assert plan(described, name, NAMES) == (3, TopicShape(3, f"id of {name}"), 1_000_000)
    assert topics.requests == ["shapes", "limits"]


def test_the_next_plan_asks_again(topics: FakeTopics) -> None:
    """The topic was deleted, or created again by someone else."""
    described = DescribedTopics(topics)
    described.describe(NAMES)
    plan(described, NAMES[0], NAMES)
    topics.shapes[NAMES[0]], topics.limits[NAMES[0]] = TopicShape(5, "another id"), 7
    assert described.shapes({NAMES[0]}, NAMES) == {NAMES[0]: TopicShape(5, "another id")}
    assert plan(described, NAMES[0], NAMES) == (5, TopicShape(5, "another id"), 7)
    del topics.shapes[NAMES[0]]
    assert described.shapes({NAMES[0]}, NAMES[1:]) == {NAMES[0]: TopicShape(1, "a new id")}


def test_a_new_topic_is_described_once(topics: FakeTopics) -> None:
    assert plan(DescribedTopics(topics), "cdc.shop.new", NAMES) == (1, TopicShape(1, "a new id"), 2_000_000)
    assert topics.requests == ["make", "limits"]


def test_what_cannot_be_described_is_asked_for_by_itself(topics: FakeTopics) -> None:
    topics.away = set(NAMES[:2])
    described = DescribedTopics(topics)
    described.describe(NAMES)
    assert described.shapes(NAMES[:3], NAMES) == {
        **dict.fromkeys(NAMES[:2], AWAY),
        NAMES[2]: TopicShape(3, f"id of {NAMES[2]}"),
    }
    with pytest.raises(CdcError, match="No answer"):
        described.max_message_bytes(NAMES[:3])
    topics.away.clear()
    topics.limits[NAMES[1]] = 5
    assert described.max_message_bytes(NAMES[:3]) == 5

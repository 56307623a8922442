"""Topics that patterns choose: new ones, those that change, and those that go away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.driver.chosen_topics import ChosenTopics
from stream_runtime.faults import Faults
from stream_runtime.records import TopicShape
from stream_runtime.settings import ChosenTopicsSettings

if TYPE_CHECKING:
    from collections.abc import Collection

AWAY = CdcError(Code.KAFKA_UNREACHABLE, "It is not there.", "")
REFUSED = CdcError(Code.KAFKA_REFUSED, "It may not be described.", "")


class JobSettings(ChosenTopicsSettings):
    """Those of a job."""

    group_id: str = "job"
    operations_port: int = 0


class MemoryTopics:
    """stream_runtime.driver.chosen_topics.KnownTopics."""

    def __init__(self) -> None:
        self.shapes: dict[str, TopicShape | CdcError] = {}

    def partition_counts(self) -> dict[str, int]:
        return dict.fromkeys(self.shapes, 1)

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape | CdcError]:
        return {topic: self.shapes.get(topic, AWAY) for topic in topics}


class Planner(ChosenTopics):
    """A job whose tables have the names of their topics, in small letters."""

    def table_of(self, topic: str) -> str:
        return topic.lower()


class Scene:
    """A job with the topics `a` and `b`."""

    def __init__(self, topics: list[str] | None = None, excluded: list[str] | None = None) -> None:
        self.known = MemoryTopics()
        self.known.shapes = {"a": TopicShape(2, "id of a"), "b": TopicShape(1, "id of b")}
        self.now = 0.0
        settings = JobSettings(topics=["[a-zA-Z_]+"] if topics is None else topics, excluded_topics=excluded or [])
        self.planner = Planner(self.known, settings, Faults(), lambda: self.now)

    def find_shapes(self, seconds: float = 10.0) -> dict[str, int]:
        """The partitions of each topic, after this time."""
        self.now += seconds
        return {topic: shape.partitions for topic, shape in self.planner.find_shapes().items()}

    def codes(self) -> dict[str, Code]:
        return {topic: error.code for topic, error in self.planner.errors.items()}


def test_the_patterns_choose() -> None:
    scene = Scene(excluded=["b"])
    scene.known.shapes["__offsets"] = TopicShape(50, "kafka's own")
    assert scene.find_shapes() == {"a": 2}
    scene.known.shapes["c"] = TopicShape(3, "id of c")
    assert scene.find_shapes(1.0) == {"a": 2}, "it has looked a second ago"
    assert scene.find_shapes() == {"a": 2, "c": 3}


def test_no_patterns() -> None:
    with pytest.raises(CdcError, match=r"job\.topics is empty: it names the topics to process"):
        Scene(topics=[]).find_shapes()


def test_more_partitions_are_no_error() -> None:
    scene = Scene()
    scene.find_shapes()
    scene.known.shapes["a"] = TopicShape(4, "id of a")
    assert scene.find_shapes() == {"a": 4, "b": 1}
    assert scene.codes() == {}


def test_a_recreated_topic_is_an_error_until_it_is_retried() -> None:
    scene = Scene()
    scene.find_shapes()
    scene.known.shapes["a"] = TopicShape(4, "another id")
    assert scene.find_shapes() == {"a": 2, "b": 1}
    assert scene.codes() == {"a": Code.STATE_MISMATCH}
    scene.planner.retry(["a", "b"])
    assert scene.find_shapes(0.0) == {"a": 4, "b": 1}
    assert scene.codes() == {}


def test_a_topic_that_is_away_for_long_is_an_error() -> None:
    scene = Scene()
    scene.find_shapes()
    shape = scene.known.shapes.pop("a")
    for _ in range(3):
        assert scene.find_shapes() == {"a": 2, "b": 1}
    assert scene.codes() == {}
    scene.known.shapes["a"] = shape
    scene.find_shapes()
    del scene.known.shapes["a"]
    for _ in range(3):
        scene.find_shapes()
    assert scene.codes() == {}, "it was back in between"
    scene.find_shapes()
    assert scene.codes() == {"a": Code.KAFKA_UNREACHABLE}


def test_a_new_topic_that_cannot_be_described() -> None:
    scene = Scene()
    scene.known.shapes |= {"a": REFUSED, "b": AWAY}
    assert scene.find_shapes() == {}
    assert scene.codes() == {"a": Code.KAFKA_REFUSED}, "a broker that has just started may not know b yet"


def test_two_topics_of_one_table() -> None:
    """The one that has its table already keeps it."""
    scene = Scene()
    scene.planner.check_tables()
    scene.find_shapes()
    scene.known.shapes["A"] = TopicShape(1, "id of A")
    assert scene.find_shapes() == {"a": 2, "b": 1}
    assert scene.codes() == {"A": Code.SPARK_SETTING}
    assert "The topics A, a would have the same table a." in str(scene.planner.errors["A"])
    with pytest.raises(CdcError, match="the same table a"):
        scene.planner.check_tables()
    assert scene.find_shapes() == {"a": 2, "b": 1}

"""The driver's plans, with topics that are said to be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from archive.job import planner
from archive.job.planner import TopicPlanner
from archive.job.run import job_of
from archive.settings import ArchiveSettings, Settings
from cdc_common.errors.codes import CdcError, Code
from stream_runtime.records import TopicShape

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdc_common.settings import KafkaSettings

REFUSED = CdcError(Code.KAFKA_REFUSED, "Its settings may not be read.", "")


class Topics:
    """The topics that are there."""

    shapes: dict[str, TopicShape] = {}  # noqa: RUF012 - of the test that runs
    compacted: dict[str, bool | CdcError] = {}  # noqa: RUF012 - as above

    def __init__(self, _settings: KafkaSettings) -> None: ...

    def partition_counts(self) -> dict[str, int]:
        return {topic: shape.partitions for topic, shape in self.shapes.items()}

    def each_shape(self, topics: Collection[str]) -> dict[str, TopicShape]:
        return {topic: self.shapes[topic] for topic in topics}

    def each_is_compacted(self, topics: Collection[str]) -> dict[str, bool | CdcError]:
        return {topic: self.compacted[topic] for topic in topics}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> TopicPlanner:
    monkeypatch.setattr(planner, "Topics", Topics)
    Topics.shapes = {topic: TopicShape(10, f"id of {topic}") for topic in ("a", "b", "cdc.archive.files")}
    Topics.compacted = {"a": True, "b": False}
    return TopicPlanner(job_of(Settings(archive=ArchiveSettings(topics=[".*"]))), lambda: 0.0)


def test_topics_and_their_shares(made: TopicPlanner) -> None:
    plan = made.plan_batch()
    assert {topic: stream.is_compacted for topic, stream in plan.streams.items()} == {"a": True, "b": False}
    assert [(share.id, len(share.partitions)) for share in plan.shares] == [
        ("a-0", 8),
        ("a-8", 2),
        ("b-0", 8),
        ("b-8", 2),
    ]
    assert made.plan_batch() == plan


def test_settings_that_cannot_be_read_stop_their_topic(made: TopicPlanner) -> None:
    Topics.compacted["a"] = REFUSED
    assert list(made.plan_batch().streams) == ["b"]
    assert made.errors == {"a": REFUSED}
    Topics.compacted["a"] = False
    assert list(made.plan_batch().streams) == ["b"]
    made.retry(["a"])
    assert {topic: stream.is_compacted for topic, stream in made.plan_batch().streams.items()} == {
        "a": False,
        "b": False,
    }
    assert made.errors == {}


def test_a_retry_asks_again_whether_a_topic_is_compacted(made: TopicPlanner) -> None:
    made.plan_batch()
    Topics.compacted["b"] = True
    made.retry(["b"])
    assert made.plan_batch().streams["b"].is_compacted


def test_topics_whose_tables_differ_by_a_schema_version(made: TopicPlanner) -> None:
    """The table of a schema version is named orders__v2."""
    Topics.shapes = {topic: TopicShape(1, f"id of {topic}") for topic in ("shop.orders", "shop.orders--v2")}
    with pytest.raises(CdcError, match=r"would have the same table shop\.orders") as raised:
        made.check_tables()
    assert raised.value.code is Code.ARCHIVE_SETTING

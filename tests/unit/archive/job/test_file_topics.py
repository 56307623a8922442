"""Topics that topic files want to be archived: from the registry, and while it is away."""

from __future__ import annotations

from typing import Any

import pytest

from archive.job import planner
from archive.job.planner import TopicPlanner
from archive.job.run import job_of
from archive.settings import ArchiveSettings, Settings
from cdc_common.clients.registry.errors import RegistryRequestError, no_answer
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import Managed
from cdc_common.settings import RegistrySettings
from stream_runtime.driver.file_topics import FileTopics
from tests.support.stream_runtime.known_topics import KnownTopics


class Registry:
    """SchematizerClient.managed, as far as it is used."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, Any]] = {}
        self.pending: set[str] = set()
        self.is_away = False

    def managed(self, deployment: str, kind: str) -> list[Managed]:
        assert (deployment, kind) == ("prod", "archive")
        if self.is_away:
            raise no_answer("http://registry", "GET /", "refused")
        return [
            Managed(kind=kind, name=name, content=content, about={"pending": "true"} if name in self.pending else {})
            for name, content in self.topics.items()
        ]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()
    monkeypatch.setattr(SchematizerClient, "of_settings", lambda _settings: made)
    monkeypatch.setattr(planner, "Topics", KnownTopics)
    return made


def made(now: list[float], **settings: Any) -> TopicPlanner:  # noqa: ANN401 - of any kind
    own = ArchiveSettings(deployment="prod", **settings)
    return TopicPlanner(job_of(Settings(archive=own)), lambda: now[0])


def test_a_new_file_is_archived_with_no_other_step(registry: Registry) -> None:
    registry.topics, registry.pending = {"shop.plain": {}, "shop.absent": {}}, {"shop.plain"}
    now = [0.0]
    job = made(now, topics=["cdc.*"], topic_settings=["shop.orders lost=accept layout=hive"])
    assert set(job.plan_batch().streams) == {"cdc.shop.users"}
    registry.topics["shop.orders"] = {
        "layout": "iceberg",
        "bucket": "day",
        "event_time": "at|made_at",
        "table": "lake.orders",
        "format": "json",
    }
    now[0] = 100.0
    stream = job.plan_batch().streams["shop.orders"]
    assert stream.definition._asdict() == job.definition_of("cdc.shop.users")._asdict() | {
        "table": "lake.orders",
        "bucket": "day",
        "event_time": ("at", "made_at"),
        "format": "json",
        "subject": "shop.orders-value",
        "layout": "hive",  # the job's own settings count before the file
        "lost": "accept",
    }


def test_a_changed_file_changes_the_definition(registry: Registry) -> None:
    registry.topics = {"shop.orders": {"bucket": "hour"}}
    now = [0.0]
    job = made(now)
    before = job.plan_batch().streams["shop.orders"]
    registry.topics = {"shop.orders": {"bucket": "day"}}
    now[0] = 100.0
    after = job.plan_batch().streams["shop.orders"]
    assert (before.definition.bucket, after.definition.bucket) == ("hour", "day")
    assert after.shape == before.shape


def test_a_topic_whose_file_asks_no_longer_leaves_the_plan(registry: Registry) -> None:
    registry.topics = {"shop.orders": {"table": "lake.orders"}, "shop.plain": {}}
    now = [0.0]
    job = made(now)
    assert set(job.plan_batch().streams) == {"shop.orders", "shop.plain"}
    del registry.topics["shop.orders"]
    now[0] = 100.0
    assert set(job.plan_batch().streams) == {"shop.plain"}, "and goes on in no other table"


def test_excluded_topics_stay_out(registry: Registry) -> None:
    registry.topics = {"shop.orders": {}}
    assert made([0.0], excluded_topics=["shop.*"]).find_topics() == []


def test_the_last_answer_counts_while_the_registry_is_away(registry: Registry) -> None:
    registry.is_away = True
    job = made([0.0])
    with pytest.raises(RegistryRequestError) as refused:
        job.find_topics()
    assert refused.value.is_retried
    registry.is_away, registry.topics = False, {"shop.orders": {}}
    assert job.find_topics() == ["shop.orders"]
    registry.is_away = True
    assert job.find_topics() == ["shop.orders"]


def test_without_a_deployment_nothing_is_asked() -> None:
    assert FileTopics(RegistrySettings(url="http://127.0.0.1:1"), "", "archive").read() == {}

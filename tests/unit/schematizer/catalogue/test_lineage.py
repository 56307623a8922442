"""The way of a source's rows, in order: as values, over REST and on Watson's page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.registry.kinds import TopicKind
from cdc_common.clients.registry.views import (
    CassandraTable,
    Lineage,
    Reader,
    StageKind,
)
from schematizer.application import REST_PATH
from schematizer.catalogue.clients import ConsumerRegistration
from schematizer.errors import CatalogueError
from schematizer.measures.measured import Measured
from schematizer.model.database import opened
from tests.support.schematizer import watson_data
from tests.support.schematizer.watson import watson_over
from tests.support.schematizer.watson_data import BY, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.schematizer.watson import Watson

RAW, TOPIC, SECOND, DEAD = "cdc.raw.shop.orders", "cdc.shop.orders", "pii-cdc.shop.orders-v2", "cdc.dead.shop.orders"
RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})


class Seen:
    """Kafka's answers: a group that has not registered reads the newest topic, and lags; the loader reads both."""

    problem = None

    def of(self, topic: str) -> Measured | None:
        lags = {TOPIC: {"warehouse-loader": 3}, SECOND: {"warehouse-loader": 4, "ad-hoc": 40}}
        return Measured(1, None, lags[topic]) if topic in lags else None


@pytest.fixture
def watson(tmp_path: Path) -> Iterator[Watson]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        made = watson_over(database, Seen())
        watson_data.fill(made.store, made.catalogue)
        for topic in (DEAD, SECOND):
            made.store.register(f"{topic}-value", RECORD)
        again = ConsumerRegistration("team-checkout", "invoice-mailer-2", TOPIC, "invoices", 3600)
        made.catalogue.clients.register_consumer(again, by=BY)
        yield made


def asked(watson: Watson, source: str = "orders", namespace: str = NAMESPACE) -> Lineage:
    answer = watson.client.get(f"{REST_PATH}/namespaces/{namespace}/sources/{source}/lineage")
    assert answer.status_code == 200, answer.text
    return Lineage.model_validate_json(answer.text)


def test_stages_of_a_table(watson: Watson) -> None:
    lineage = asked(watson)
    table, raw, change, consumers = lineage.stages
    assert [stage.kind for stage in lineage.stages] == ["table", "raw", "change", "consumers"]
    assert table.tables == [CassandraTable(keyspace="shop", name="orders")]
    assert [topic.name for topic in raw.topics] == [RAW]
    assert [(topic.name, topic.kind) for topic in change.topics] == [
        (TOPIC, TopicKind.CHANGE),
        (SECOND, TopicKind.CHANGE),
        (DEAD, TopicKind.DEAD),
    ]
    loaded, mailed = {TOPIC: 3, SECOND: 4}, ["invoice-mailer", "invoice-mailer-2"]
    assert consumers.readers == [
        Reader(group="ad-hoc", services=[], data_target=None, topics=[SECOND], lags={SECOND: 40}),
        Reader(group="invoices", services=mailed, data_target=None, topics=[TOPIC], lags={}),
        Reader(group="warehouse-loader", services=[], data_target="warehouse", topics=[TOPIC, SECOND], lags=loaded),
    ]
    for stage in lineage.stages:
        assert sum(map(bool, (stage.tables, stage.topics, stage.readers))) == 1, stage.kind


def test_a_registry_without_kafka_knows_the_rest(watson: Watson) -> None:
    found = watson.catalogue.lineages.of_source(NAMESPACE, "orders").stages[-1].readers
    assert [(reader.group, reader.lags) for reader in found] == [("invoices", {}), ("warehouse-loader", {})]


def test_what_is_no_table(watson: Watson) -> None:
    """No raw topic: nothing says where its rows come from; no consumer is known."""
    watson.store.register("app.visits-value", RECORD)
    topic, consumers = asked(watson, "visits", "app").stages
    assert (topic.kind, consumers.kind) == (StageKind.OTHER, StageKind.CONSUMERS)
    assert [found_topic.name for found_topic in topic.topics] == ["app.visits"]
    assert consumers.readers == []


def test_a_table_without_changes_yet(watson: Watson) -> None:
    watson.store.register("cdc.raw.shop.quiet-value", RECORD)
    stages = asked(watson, "quiet").stages
    assert [(stage.kind, len(stage.topics)) for stage in stages] == [
        (StageKind.TABLE, 0),
        (StageKind.RAW, 1),
        (StageKind.CHANGE, 0),
        (StageKind.CONSUMERS, 0),
    ]
    assert [reader.group for reader in stages[-1].readers] == ["warehouse-loader"]


@pytest.mark.parametrize(("namespace", "source"), [(NAMESPACE, "nothing"), ("cdc.none", "orders")])
def test_what_is_not_there(watson: Watson, namespace: str, source: str) -> None:
    with pytest.raises(CatalogueError, match="no"):
        watson.catalogue.lineages.of_source(namespace, source)
    assert watson.client.get(f"{REST_PATH}/namespaces/{namespace}/sources/{source}/lineage").status_code == 404


def test_watson_shows_the_same_order(watson: Watson) -> None:
    page = watson.page(f"/sources/{NAMESPACE}/orders").partition('<ol class="lineage">')[2].partition("</ol>")[0]
    words = ["Cassandra table", "shop.orders", "Raw topic", RAW, "Change topic", TOPIC, SECOND, DEAD, "dead letters"]
    words += ["Consumers", "ad-hoc", "lag 40", "invoices", "invoice-mailer-2", "lag unknown", "warehouse-loader"]
    words += ["fills", "lag 7"]
    places = [page.find(f">{word}<") if word in (RAW, TOPIC, SECOND, DEAD) else page.find(word) for word in words]
    assert -1 not in places, [word for word, place in zip(words, places, strict=True) if place < 0]
    assert places == sorted(places)

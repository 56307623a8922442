"""Streams whose schemas and flags change, and messages and steps that do not fit. Without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import FieldText, SourceDocumentation
from cdc_common.errors.codes import Code
from tests.support.transformer.local_job import LocalJob
from tests.support.transformer.orders import with_column
from tests.support.transformer.scene import BAD_STATUS, PARTITIONS, SECOND_STEPS, STEPS, Keyed, Scene
from transformer.job import open_streams
from transformer.routing.confluent import ConfluentCatalogue

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings

pytestmark = pytest.mark.servers

MASK_PII = '\n[[transformer.step]]\nkind = "mask"\ncolumns = "pii"\nhow = "redact"\n'


def run_to(scene: Scene, count: int, target: int = 0, **settings: Any) -> None:  # noqa: ANN401 - settings
    """So many messages come out, and all is as expected."""
    with LocalJob(scene, **settings) as job:
        job.run_until(lambda: sum(map(len, received(scene, target).values())) >= count)
    assert received(scene, target) == scene.expected(range(count), is_second=target == 1)


def received(scene: Scene, target: int = 0) -> dict[int, list[Keyed]]:
    return scene.received(scene.targets[target]) if _exists(scene, scene.targets[target]) else {}


def rows(scene: Scene) -> list[dict[str, Any]]:
    """The messages of all partitions, without tombstones."""
    return [row for part in received(scene).values() for _, row in part if row is not None]


def count_of(scene: Scene) -> int:
    return sum(map(len, received(scene).values()))


def target_rows(scene: Scene) -> list[dict[str, Any]]:
    """The messages of all topics that the target has, without tombstones."""
    topics = [topic.name for topic in client(scene).topics(namespace=f"{scene.prefix}-1.shop", source="orders")]
    parts = [part for topic in topics if _exists(scene, topic) for part in scene.received(topic).values()]
    return [row for part in parts for _, row in part if row is not None]


def _exists(scene: Scene, topic: str) -> bool:
    return topic in AdminClient({"bootstrap.servers": scene.bootstrap}).list_topics(timeout=10).topics


def client(scene: Scene) -> SchematizerClient:
    return SchematizerClient(scene.registry, cache_seconds=0)


@pytest.mark.exhaustive
def test_a_message_that_is_refused_stops_its_partition_alone(scene: Scene) -> None:
    scene.send(range(10))
    scene.send([20], status=BAD_STATUS)  # key 9, partition 1
    scene.send(range(30, 40))
    with LocalJob(scene) as job:
        job.run_until(lambda: bool(job.errors) and len(received(scene).get(0, [])) == 11)
    (error,) = job.errors.values()
    assert error.code is Code.TRANSFORM_FAILED
    assert f"{scene.topic}-1" in error.problem
    assert "the number in column status has no name" in error.problem
    assert str(BAD_STATUS) not in error.problem.partition(": ")[2]
    good = scene.expected(range(10))
    assert received(scene)[1] == good[1]
    scene.write_file(STEPS.replace('names = { 0 = "new", 1 = "paid" }', 'names = { 0 = "new", 1 = "paid", 9 = "bad" }'))
    with LocalJob(scene) as job:
        job.run_until(lambda: len(received(scene)[1]) == 10)
        assert not job.errors
    _, repaired = received(scene)[1][len(good[1])]
    assert repaired is not None
    assert repaired["status"] == "bad"


def test_a_restart_goes_on_and_a_chain_follows(scene: Scene) -> None:
    scene.send(range(50))
    run_to(scene, 50)
    scene.write_file(second=SECOND_STEPS)
    scene.send(range(50, 80))
    run_to(scene, 80, target=1)
    assert received(scene) == scene.expected(range(80))


@pytest.mark.exhaustive
def test_an_aborted_transaction_of_the_source_is_not_seen(scene: Scene) -> None:
    producer = Producer({"bootstrap.servers": scene.bootstrap, "transactional.id": f"{scene.prefix}-aborted"})
    producer.init_transactions()
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(scene.topic, b"not Avro", b"neither", partition)
    producer.flush()
    producer.abort_transaction()
    scene.send(range(20))
    run_to(scene, 20)


def test_a_schema_that_gets_a_column_is_followed(scene: Scene) -> None:
    scene.send(range(20))
    with LocalJob(scene) as job:
        job.run_until(lambda: count_of(scene) == 20)
        scene.send(range(20, 40), schema=with_column("note"))
        job.run_until(lambda: count_of(scene) == 40)
        assert not job.errors
    assert sum("note" in row for row in rows(scene)) == 16
    topics = client(scene).topics_of_source(f"{scene.prefix}-1.shop", "orders")
    assert [topic.name for topic in topics] == [scene.targets[0]]


def test_a_masked_column_that_is_renamed_stops_before_its_first_message(scene: Scene) -> None:
    scene.send(range(20))
    run_to(scene, 20)
    scene.send(range(20, 30), schema=with_column("mail", instead="email"), names={"email": "mail"})
    with LocalJob(scene) as job:
        job.run_until(lambda: bool(job.errors))
    assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_STEP}
    assert 'transformer "first", step 1 (mask) does not fit' in next(iter(job.errors.values())).problem
    assert received(scene) == scene.expected(range(20))


@pytest.mark.exhaustive
def test_personal_columns_are_masked_as_the_catalogue_marks_them(scene: Scene) -> None:
    scene.write_file(MASK_PII)
    said = {"email": FieldText(pii=True), "home": FieldText(pii=True)}
    client(scene).document(f"{scene.prefix}.shop", "orders", SourceDocumentation(fields=said))
    scene.send(range(4))
    with LocalJob(scene) as job:
        job.run_until(lambda: len(target_rows(scene)) == 4)
        assert {(row["email"], row["home"]) for row in target_rows(scene)} == {("***", "***")}
        said["work"] = FieldText(pii=True)
        client(scene).document(f"{scene.prefix}.shop", "orders", SourceDocumentation(fields=said))
        job.planner._next_look = -1.0
        job.run_batch()
        scene.send(range(5, 9))
        job.run_until(lambda: len(target_rows(scene)) == 8)  # in another topic: the type of `work` is another one
    assert sum(row["work"] == "***" for row in target_rows(scene)) == 4
    marked = client(scene).source_elements(f"{scene.prefix}-1.shop", "orders")
    assert not [element.path for element in marked if element.is_pii]


@pytest.mark.exhaustive
def test_personal_columns_that_stay_are_marked_in_the_target(scene: Scene) -> None:
    said = SourceDocumentation(fields={"email": FieldText(pii=True), "work": FieldText(pii=True)})
    client(scene).document(f"{scene.prefix}.shop", "orders", said)
    scene.write_file()  # which masks email, and not work
    scene.send(range(4))
    with LocalJob(scene) as job:
        job.run_until(lambda: len(target_rows(scene)) == 4)
    marked = client(scene).source_elements(f"{scene.prefix}-1.shop", "orders")
    assert [element.path for element in marked if element.is_pii] == ["work"]
    assert _exists(scene, f"pii-{scene.targets[0]}")


def test_another_name_with_the_same_target_sends_nothing(scene: Scene) -> None:
    scene.send(range(20))
    run_to(scene, 20)
    with LocalJob(scene, group_id=f"{scene.prefix}-other") as job:
        job.run_until(lambda: len(job.errors) == PARTITIONS)
    assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_REPEATED}
    assert received(scene) == scene.expected(range(20))


@pytest.mark.exhaustive
def test_a_source_with_more_partitions_stops(scene: Scene) -> None:
    scene.send(range(20))
    run_to(scene, 20)
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.create_partitions([NewPartitions(scene.topic, PARTITIONS + 1)])[scene.topic].result()
    with LocalJob(scene) as job:
        job.run_until(lambda: f"first/{scene.topic}-0" in job.errors)
    assert job.errors[f"first/{scene.topic}-0"].code is Code.TRANSFORM_SOURCE
    assert "has 3 partitions now; it had 2" in job.errors[f"first/{scene.topic}-0"].problem


def test_a_source_that_is_recreated_during_a_batch_sends_nothing(scene: Scene) -> None:
    """The new topic has messages at the offsets of the old one, and the workers' plan does not know of it."""
    scene.send(range(20))
    with LocalJob(scene) as job:
        job.run_until(lambda: count_of(scene) == 20)
        plan = job.planner.plan_batch()
        with job.without_fetches():
            scene.recreate_source()
            scene.send(range(20, 80))
        job.run_until(lambda: len(job.errors) == PARTITIONS, plan)
        assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_SOURCE}
        assert all("was deleted and recreated" in error.problem for error in job.errors.values())
    assert received(scene) == scene.expected(range(20))


@pytest.mark.exhaustive
def test_each_topic_of_a_source_has_a_topic_of_its_own(scene: Scene) -> None:
    """The second topic of a source, as it comes after a changed key or flag, has the same schemas here."""
    scene.send(range(20))
    topic = f"{scene.topic}-v2"
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    scene.send(range(20, 30), topic=topic)
    target = f"{scene.targets[0]}-v2"
    with LocalJob(scene) as job:
        job.run_until(
            lambda: (
                count_of(scene) == 20
                and _exists(scene, target)
                and sum(map(len, scene.received(target).values())) == 10
            )
        )
        assert not job.errors
    assert received(scene) == scene.expected(range(20))
    assert scene.received(target) == scene.expected(range(20, 30))


@pytest.mark.exhaustive
def test_another_registry(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Confluent's API alone: topics are found and chosen by name, and what is personal is not known."""

    def confluent(settings: RegistrySettings) -> ConfluentCatalogue:
        return ConfluentCatalogue(RegistryClient(settings))

    monkeypatch.setattr(open_streams, "open_catalogue", confluent)
    monkeypatch.setattr("tests.support.transformer.local_job.open_catalogue", confluent)
    scene.send(range(20))
    run_to(scene, 20)
    scene.write_file(MASK_PII)
    with LocalJob(scene) as job:
        job.run_until(lambda: bool(job.errors))
    assert {error.code for error in job.errors.values()} == {Code.REGISTRY_REFUSED}

"""Topic files, applied to a broker with an authorizer and to a registry: by the commands that people run."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from dev.local_stack.process.paths import project_root
from tests.support.schematizer.authorized_kafka import SECONDS, AuthorizedKafka
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.topic_commands import TopicCommands, write_settings
from tests.support.schematizer.topic_repository import CATALOGUE, CITY, TOPIC, schema, write_repository, write_topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ORDERS = "staging.shop.orders"
MORE = """
[services.lake]
owner = "shop"
principal = "User:CN=lake"
[services.tx]
owner = "shop"
principal = "User:tx"
transactional_ids = ["tx-"]
"""
pytestmark = [pytest.mark.servers, pytest.mark.timeout(500)]


def rights_of_the_guide() -> dict[ResourceType, list[str]]:
    """The operations in the two commands of the guide: on all topics, and on the cluster."""
    guide = (project_root() / "docs" / "guides" / "topic-files.md").read_text()
    commands = [part for part in guide.split("kafka-acls.sh")[1:] if "User:topics" in part]
    found = {}
    for command in commands:
        resource = ResourceType.BROKER if "--cluster" in command else ResourceType.TOPIC
        names = re.findall(r"--operation (\w+)", command.partition("```")[0])
        found[resource] = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() for name in names]
    assert len(found) == 2
    return found


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizedKafka]:
    users = ("topics", "web", "billing", "tx", "mallory")
    with AuthorizedKafka(tmp_path_factory.mktemp("certificates"), users) as running:
        running.add_users()
        running.allow("topics", rights_of_the_guide())
        yield running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    running = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture
def commands(kafka: AuthorizedKafka, registry: Registry, tmp_path: Path) -> TopicCommands:
    """On files of one topic in two environments."""
    settings = {"kafka": kafka.settings_of("topics"), "registry": {"url": registry.url}}
    root = write_repository(tmp_path / "topics")
    (root / "catalogue.toml").write_text(CATALOGUE + MORE)
    return TopicCommands(root, write_settings(tmp_path / "cdc.toml", settings))


def produce(kafka: AuthorizedKafka, settings: dict[str, str], topic: str, **own: str) -> KafkaError | None:
    """The error of a message, or none."""
    producer = Producer({**kafka.client(settings), "message.timeout.ms": int(SECONDS * 1000), **own})
    errors: list[KafkaError | None] = []
    if "transactional.id" in own:
        try:
            producer.init_transactions(SECONDS)
        except KafkaException as exception:
            refused: KafkaError = exception.args[0]
            return refused
        producer.begin_transaction()
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    if "transactional.id" in own:
        producer.commit_transaction(SECONDS)
    producer.flush(SECONDS)
    [error] = errors
    return error


def consume(kafka: AuthorizedKafka, settings: dict[str, str], topic: str, group: str) -> KafkaError | bytes | None:
    """A message of the topic, or the error."""
    consumer = Consumer({**kafka.client(settings), "group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(SECONDS)
        assert message is not None
        return message.error() or message.value()
    finally:
        consumer.close()


def test_files_become_topics_rights_quotas_and_schemas(
    commands: TopicCommands, kafka: AuthorizedKafka, registry: Registry
) -> None:
    text = TOPIC + '[[producers]]\nservice = "tx"\n[[consumers]]\nservice = "lake"\n'
    for environment in ("staging", "prod"):
        write_topic(commands.root, environment, "orders", text)
    refused = commands.run("apply", "prod")
    assert refused.status == 1
    assert "CDC-149" in refused.errors
    assert "before-staging=prod.shop.orders" in refused.errors
    assert "prod.shop.orders" not in kafka.admin().list_topics(timeout=SECONDS).topics
    for environment in ("staging", "prod"):
        applied = commands.run("apply", environment)
        assert applied.status == 0, applied.errors
        assert f"created topic {environment}.shop.orders" in applied.output
        again = commands.run("apply", environment)
        assert "0 to create, 0 to change, 0 to delete, 0 refused, 0 changed by hand" in again.sums, again.output
        assert "to note" not in again.sums
        assert commands.run("drift", environment).status == 0

    topic = kafka.admin().list_topics(timeout=SECONDS).topics[ORDERS]
    assert len(topic.partitions) == 2
    admin = kafka.admin()
    [settings] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, ORDERS)]).values()
    assert settings.result(SECONDS)["retention.ms"].value == "604800000"
    versions = registry.call("GET", f"/subjects/{ORDERS}-value/versions").body
    assert versions == [1, 2]
    assert registry.call("GET", "/api/v1/namespaces/staging.shop/sources/orders").body["owner"] == "shop"
    producers = registry.call("GET", f"/api/v1/producers?topic={ORDERS}").body
    assert [(one["service"], one["team"]) for one in producers] == [("tx", "shop"), ("web", "shop")]
    consumers = registry.call("GET", f"/api/v1/consumers?topic={ORDERS}").body
    assert [one["consumer_group"] for one in consumers] == ["billing", "lake"]

    # Who is listed may, by a password and by a certificate; who is not, may not.
    web, billing, mallory = (kafka.settings_of(user) for user in ("web", "billing", "mallory"))
    lake = kafka.settings_with_certificate("lake")
    assert produce(kafka, web, ORDERS) is None
    assert consume(kafka, billing, ORDERS, "billing") == b"x"
    assert consume(kafka, lake, ORDERS, "lake") == b"x"
    for user in (mallory, kafka.settings_with_certificate("mallory")):
        error = consume(kafka, user, ORDERS, "mallory")
        assert isinstance(error, KafkaError)
        assert error.name() in ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")
        error = produce(kafka, user, ORDERS)
        assert error is not None
        assert error.name() == "TOPIC_AUTHORIZATION_FAILED"
    refused_read = consume(kafka, web, ORDERS, "billing")
    assert isinstance(refused_read, KafkaError)
    error = produce(kafka, billing, ORDERS)
    assert error is not None
    assert error.name() == "TOPIC_AUTHORIZATION_FAILED"
    assert produce(kafka, kafka.settings_of("tx"), ORDERS, **{"transactional.id": "tx-1"}) is None
    error = produce(kafka, kafka.settings_of("tx"), ORDERS, **{"transactional.id": "other-1"})
    assert error is not None
    assert error.name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def test_documentation_has_one_place(commands: TopicCommands, registry: Registry, tmp_path: Path) -> None:
    """A table's documentation file is one of the repository; `docs apply` refuses what the repository documents."""
    text = 'namespace = "cdc.shop"\nsource = "users"\nowner = "shop"\ndoc = "People."\n[fields.name]\ndoc = "Theirs."\n'
    folder = commands.root / "shop" / "users" / "staging"
    folder.mkdir(parents=True)
    (folder / "source.toml").write_text(text)
    applied = commands.run("apply", "staging")
    assert applied.status == 0, applied.errors
    assert "created source cdc.shop/users" in applied.output
    path = "/api/v1/namespaces/cdc.shop/sources/users"
    assert registry.call("GET", path).body["doc"] == "People."
    assert commands.run("drift", "staging").status == 0

    elsewhere = tmp_path / "users.toml"
    elsewhere.write_text(text.replace("People.", "Others."))
    command = [*commands.program[:-1], "docs", "apply", str(elsewhere), "--config", str(commands.settings)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project_root())
    assert refused.returncode == 1
    assert (
        "cdc.shop/users is documented by shop/users/staging/source.toml of staging: change it there" in refused.stderr
    )
    orders = text.replace("cdc.shop", "staging.shop").replace("users", "orders")
    elsewhere.write_text(orders)
    refused = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project_root())
    assert "staging.shop/orders is documented by shop/orders/staging/topic.toml of staging" in refused.stderr

    registry.call("PUT", path, {"owner": "shop", "doc": "Others."})
    found = commands.run("drift", "staging")
    assert found.status == 1
    assert "doc: Others. -> People.    # by hand: People. was applied" in found.output
    assert commands.run("apply", "staging").status == 0
    assert registry.call("GET", path).body["doc"] == "People."


def test_drift_is_found_and_put_right(commands: TopicCommands, kafka: AuthorizedKafka) -> None:
    assert commands.run("apply", "staging").status == 0
    admin = kafka.admin()
    longer = ConfigEntry("retention.ms", "999999999", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, ORDERS, incremental_configs=[longer])
    for answer in admin.incremental_alter_configs([changed]).values():
        answer.result(SECONDS)
    metrics = commands.root / "topics.prom"
    found = commands.run("drift", "staging", "--metrics", str(metrics))
    assert found.status == 1
    assert 'kind="topic",owner="shop"} 1.0' in metrics.read_text()
    assert f"~ topic {ORDERS}    # changed by hand; owner: shop (#shop)" in found.output
    assert "retention.ms: 999999999 -> 604800000    # by hand: 604800000 was applied" in found.output
    refused = commands.run("apply", "staging")
    assert refused.status == 1, "back to a shorter retention loses messages too"
    assert f"--allow shorter-retention={ORDERS}" in refused.output
    assert commands.run("apply", "staging", "--allow", f"shorter-retention={ORDERS}").status == 0
    assert commands.run("drift", "staging").status == 0


def test_what_is_not_from_files_stays(commands: TopicCommands, kafka: AuthorizedKafka) -> None:
    admin = kafka.admin()
    for answer in admin.create_topics([NewTopic("by-hand", 1, 1)]).values():
        answer.result(SECONDS)
    assert commands.run("apply", "staging").status == 0
    write_topic(commands.root, "staging", "gone")
    assert commands.run("apply", "staging").status == 0
    for path in sorted((commands.root / "shop" / "gone").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    flag = "delete-topic=staging.shop.gone"
    refused = commands.run("apply", "staging")
    assert refused.status == 1
    assert flag in refused.output
    assert "staging.shop.gone" in admin.list_topics(timeout=SECONDS).topics
    done = commands.run("apply", "staging", "--allow", flag)
    assert done.status == 0, done.errors
    topics = admin.list_topics(timeout=SECONDS).topics
    assert "staging.shop.gone" not in topics
    assert {"by-hand", ORDERS} <= topics.keys()
    assert "0 to create, 0 to change, 0 to delete" in commands.run("plan", "staging").sums


def test_fewer_partitions_make_the_topic_again(commands: TopicCommands, kafka: AuthorizedKafka) -> None:
    name = "staging.shop.fewer"
    write_topic(commands.root, "staging", "fewer")
    assert commands.run("apply", "staging").status == 0
    assert produce(kafka, kafka.settings_of("web"), name) is None
    one = TOPIC.replace('owner = "shop"', 'owner = "shop"\npartitions = 1')
    write_topic(commands.root, "staging", "fewer", one, (schema(), schema(CITY)))
    assert commands.run("apply", "staging").status == 1
    assert len(kafka.admin().list_topics(timeout=SECONDS).topics[name].partitions) == 2
    done = commands.run("apply", "staging", "--allow", f"fewer-partitions={name}")
    assert done.status == 0, done.errors
    assert len(kafka.admin().list_topics(timeout=SECONDS).topics[name].partitions) == 1
    more = TOPIC.replace('owner = "shop"', 'owner = "shop"\npartitions = 3')
    write_topic(commands.root, "staging", "fewer", more, (schema(), schema(CITY)))
    assert commands.run("apply", "staging").status == 0, "events have no order of keys"
    assert len(kafka.admin().list_topics(timeout=SECONDS).topics[name].partitions) == 3


def test_one_apply_at_a_time(commands: TopicCommands, registry: Registry) -> None:
    write_topic(commands.root, "staging", "fewer")  # as the test before has left it
    path, body = "/api/v1/deployments/staging/lease", {"holder": "someone", "seconds": 20}
    taken = registry.call("PUT", path, body, "application/json").body
    refused = commands.run("apply", "staging")
    assert refused.status == 3
    assert "CDC-150" in refused.errors
    assert "someone applies staging" in refused.errors
    assert taken["token"] >= 1
    waited = commands.run("apply", "staging", "--wait", "60", "--allow", "fewer-partitions=staging.shop.fewer")
    assert waited.status == 0, waited.errors
    given_back = registry.call("PUT", path, body, "application/json").body
    assert given_back["token"] == taken["token"] + 2


def test_what_runs_becomes_files_that_change_nothing(
    commands: TopicCommands, kafka: AuthorizedKafka, registry: Registry, tmp_path: Path
) -> None:
    """Of topics from files, and of one that someone made with other tools."""
    text = TOPIC.replace(
        'owner = "shop"', 'owner = "shop"\nretention_hours = -1\nconfig = { "max.message.bytes" = 5000 }'
    )
    write_topic(commands.root, "staging", "imported", text + '[fields.city]\ndoc = "A town."\n')
    flags = [f"{name}=staging.shop.fewer" for name in ("delete-topic", "fewer-partitions")]
    allowed = [word for flag in flags for word in ("--allow", flag)]
    applied = commands.run("apply", "staging", "--wait", "90", *allowed)  # another test's lease may not have ended
    assert applied.status == 0, applied.errors
    other = NewTopic("made.elsewhere", 3, 1, config={"cleanup.policy": "compact", "segment.ms": "60000"})
    admin = kafka.admin()
    for answer in admin.create_topics([other]).values():
        answer.result(SECONDS)
    assert registry.register("made.elsewhere-value", {"type": "record", "name": "r", "fields": []}).status == 200

    copy = tmp_path / "copy"
    done = subprocess.run(
        [*commands.program, "import", str(copy), f"copied={commands.settings}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=project_root(),
    )
    assert done.returncode == 0, done.stderr
    assert "to correct: made/elsewhere/copied/topic.yaml: T301 made.elsewhere has no doc" in done.stderr
    imported = TopicCommands(copy, commands.settings)
    assert imported.run("check").status == 0, "what is broken has a waiver"
    plan = imported.plan("copied")
    changed = [step for step in plan["steps"] if step["action"] not in ("note", "foreign")]
    # The registry has no owner of topics that were made elsewhere, such as another test's. Nothing else changes.
    found = {(step["kind"], step["name"]) for step in changed}
    assert found - {("entry", "by-hand")} == {("entry", "made.elsewhere")}
    names = {step["name"] for step in plan["steps"] if step["kind"] == "topic"}
    assert {"staging.shop.imported", "made.elsewhere", ORDERS} <= names
    assert imported.run("apply", "copied").status == 0
    assert imported.plan("copied")["steps"] == [step for step in plan["steps"] if step["action"] == "foreign"]
    refused = subprocess.run(
        [*commands.program, "import", str(copy), f"copied={commands.settings}"], capture_output=True, check=False
    )
    assert refused.returncode == 1, "it overwrites nothing"

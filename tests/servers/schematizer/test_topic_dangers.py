"""Every dangerous change is refused on a real broker and registry, with all others of its apply, and done if a flag
names it.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from schematizer.topic_files.planning.dangers import NAMES
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.topic_commands import TopicCommands, topic_commands
from tests.support.schematizer.topic_repository import CITY, TOPIC, schema, write_topic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.timeout(500)]
SECONDS = 60
PROGRAMS = '[archive]\nprincipal = "User:archive"\ngroup = "archive"\n'


def with_lines(*lines: str, typology: str = "event") -> str:
    """The text of a topic file with more lines before its tables."""
    more = "\n".join(('owner = "shop"', *lines))
    return TOPIC.replace('owner = "shop"', more).replace('typology = "event"', f'typology = "{typology}"')


class Change(NamedTuple):
    """A topic whose file changes."""

    # The file before.
    before: str
    # The file after; None removes the topic.
    after: str | None
    # What precedes the topic's name.
    prefix: str = ""


MARKED = with_lines('pii = "personal"') + "[fields.event_id]\npii = true\n"
CHANGES = {
    "shorter-retention": Change(with_lines(), with_lines("retention_hours = 1")),
    "fewer-partitions": Change(with_lines(), with_lines("partitions = 1")),
    "more-partitions": Change(with_lines(typology="changelog"), with_lines("partitions = 4", typology="changelog")),
    "compaction-off": Change(with_lines(typology="changelog"), with_lines('cleanup = "delete"', typology="changelog")),
    "compaction-on": Change(with_lines(), with_lines('cleanup = "compact"')),
    "fewer-in-sync": Change(with_lines("min_in_sync_replicas = 2"), with_lines("min_in_sync_replicas = 1")),
    "delete-topic": Change(with_lines(), None),
    "delete-schema": Change(with_lines(), with_lines()),  # one schema instead of two
    "not-personal": Change(MARKED + "[fields.city]\npii = true\n", MARKED, "pii-"),
    "archive-off": Change(with_lines() + "[archive]\n", with_lines()),
}
"""By the name of the danger, which is the topic's folder too."""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    running = Registry(tmp_path / "registry.db").start()
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture
def commands(kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path) -> TopicCommands:
    return topic_commands(tmp_path, kafka.bootstrap_servers, registry.url, topic_prefix, PROGRAMS)


def test_every_danger_is_refused_and_allowed_by_its_flag_alone(
    commands: TopicCommands, kafka: KafkaBroker, topic_prefix: str
) -> None:
    assert {*CHANGES, "before-staging"} == set(NAMES), "each danger that a flag can allow"
    root, admin = commands.root, AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for name, change in CHANGES.items():
        write_topic(root, "staging", name, change.before)
    assert commands.run("apply", "staging").status == 0
    before = state(admin, topic_prefix)
    topics = {name: f"{change.prefix}{topic_prefix}.staging.shop.{name}" for name, change in CHANGES.items()}
    assert {*topics.values()} == set(before)

    for name, change in CHANGES.items():
        if change.after is None:
            shutil.rmtree(root / "shop" / name)
        else:
            write_topic(root, "staging", name, change.after)
    (root / "shop" / "delete-schema" / "staging" / "schemas" / "2.avsc").unlink()
    write_topic(root, "staging", "new")
    plan = commands.plan("staging")
    flags = {f"{name}={topic}" for name, topic in topics.items()}
    assert set(plan["refused"]) == flags
    losses = {danger["name"]: danger["loss"] for step in plan["steps"] for danger in step["dangers"]}
    assert all(loss.endswith(".") for loss in losses.values())

    *most, last = sorted(flags)
    for allowed in ([], most, [*most, f"{last}x"]):
        refused = commands.run("apply", "staging", *(word for flag in allowed for word in ("--allow", flag)))
        assert refused.status == 1
        assert "CDC-149" in refused.errors
        assert last in refused.errors
        assert state(admin, topic_prefix) == before, "nothing was done, the new topic included"

    applied = commands.run("apply", "staging", *(word for flag in sorted(flags) for word in ("--allow", flag)))
    assert applied.status == 0, applied.errors
    after = state(admin, topic_prefix)
    assert topics["delete-topic"] not in after
    assert after[topics["fewer-partitions"]][0] == 1
    assert after[topics["more-partitions"]][0] == 4
    assert after[topics["compaction-on"]][1]["cleanup.policy"] == "compact"
    assert after[topics["compaction-off"]][1]["cleanup.policy"] == "delete"
    assert after[topics["shorter-retention"]][1]["retention.ms"] == "3600000"
    assert after[topics["fewer-in-sync"]][1]["min.insync.replicas"] == "1"
    assert "0 to create, 0 to change, 0 to delete, 0 refused, 0 changed by hand" in commands.run("plan", "staging").sums

    # Another number of copies is never done, and no flag has its name.
    write_topic(root, "staging", "new", with_lines("replication_factor = 2"))
    refused = commands.run("apply", "staging")
    assert refused.status == 1
    assert "kafka-reassign-partitions.sh" in refused.output
    assert (
        commands.run("apply", "staging", "--allow", f"replication-factor={topic_prefix}.staging.shop.new").status == 2
    )


def test_what_staging_does_not_have_is_refused(commands: TopicCommands, kafka: KafkaBroker, topic_prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for environment in ("staging", "prod"):
        write_topic(commands.root, environment, "orders", schemas=(schema(), schema(CITY)))
    flag = f"before-staging={topic_prefix}.prod.shop.orders"
    refused = commands.run("apply", "prod")
    assert refused.status == 1
    assert flag in refused.errors
    assert state(admin, topic_prefix) == {}
    assert commands.run("apply", "prod", "--allow", flag).status == 0
    assert set(state(admin, topic_prefix)) == {f"{topic_prefix}.prod.shop.orders"}


def state(admin: AdminClient, prefix: str) -> dict[str, tuple[int, dict[str, str | None]]]:
    """The partitions and settings of the topics of this test."""
    known = admin.list_topics(timeout=SECONDS).topics
    names = [name for name in known if name.removeprefix("pii-").startswith(f"{prefix}.")]
    if not names:
        return {}
    answers = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    settings = {
        resource.name: {key: entry.value for key, entry in answer.result(SECONDS).items()}
        for resource, answer in answers.items()
    }
    return {name: (len(known[name].partitions), settings[name]) for name in names}

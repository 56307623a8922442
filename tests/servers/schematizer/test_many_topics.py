"""Topic files of a whole company: 160 topics from nothing and after kills, and 1,000 topics within limits."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka.admin import ConfigSource

from cdc_common.clients.kafka_admin import topic_settings
from cdc_common.settings import KafkaSettings
from schematizer.topic_files.applying.kafka import read_rights
from schematizer.topic_files.applying.quotas import Quotas
from tests.support.schematizer.authorized_kafka import ADMIN, SECONDS, AuthorizedKafka
from tests.support.schematizer.counted_requests import counted, run_apply, run_plan
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.topic_commands import TopicCommands, write_settings
from tests.support.schematizer.topic_repository import write_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPICS = 160
MANY = 1000
CHECK_SECONDS, PLAN_SECONDS, PLAN_MIB = 5, 30, 400
KILLS = (1, 170, 300, 150)
"""Kill after so many lines of output, each from where the last one was killed. There are about 1,180 in all."""
APPLY_SECONDS = 1200
PLAN_REQUESTS, APPLY_REQUESTS = 40, 6
"""Of a plan, to Kafka and to the registry each; and of an apply to the registry, for each topic."""
LOG = logging.getLogger(__name__)
pytestmark = [pytest.mark.exhaustive, pytest.mark.servers, pytest.mark.timeout(1500)]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[AuthorizedKafka]:
    folder = tmp_path / "certificates"
    folder.mkdir()
    with AuthorizedKafka(folder, ()) as running:
        running.add_users()
        yield running


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    running = Registry(tmp_path / "registry.db").start()
    yield running
    assert running.stop() == 0, running.log


def commands_for(tmp_path: Path, kafka: AuthorizedKafka, registry: Registry, topics: int) -> TopicCommands:
    settings = {"kafka": kafka.settings_of(ADMIN), "registry": {"url": registry.url}}
    root = write_repository(tmp_path / "topics", topics)
    return TopicCommands(root, write_settings(tmp_path / "cdc.toml", settings))


def everything(kafka: AuthorizedKafka, registry: Registry, environment: str) -> dict[str, Any]:
    """All that an environment has in Kafka and in the registry, as a text of JSON would have it, without its name."""
    admin = kafka.admin()
    known = admin.list_topics(timeout=SECONDS).topics
    names = sorted(name for name in known if name.startswith(f"{environment}."))
    settings = {
        name: {
            key: entry.value
            for key, entry in answer.result(SECONDS).items()
            if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
        }
        for name, answer in topic_settings(admin, names)
    }
    rights = [right for right in read_rights(admin) or () if not right.name.startswith(other(environment))]
    clients = {
        kind: sorted(
            (one["topic"], one["service"], one["team"], one["expected_frequency_seconds"])
            for one in registry.call("GET", f"/api/v1/{kind}").body
            if one["topic"] in names
        )
        for kind in ("producers", "consumers")
    }
    with Quotas(KafkaSettings.model_validate(kafka.settings_of(ADMIN))) as quotas:
        rates = {thing.name: dict(found.content) for thing, found in quotas.read().items()}
    found = {
        "topics": {name: [len(known[name].partitions), settings[name]] for name in names},
        "rights": sorted(map(str, rights)),
        "quotas": rates,
        "schemas": [
            [version["subject"], version["version"], version["schema"]]
            for version in pages(registry, f"{environment}.")
        ],
        "sources": [
            [source["name"], source["owner"], source["doc"]]
            for source in registry.call("GET", f"/api/v1/namespaces/{environment}.shop/sources").body
        ],
        "clients": clients,
    }
    text = json.dumps(found).replace(f"{environment}.", "ENVIRONMENT.")
    return dict(json.loads(text))


def other(environment: str) -> str:
    return "prod." if environment == "staging" else "staging."


def pages(registry: Registry, prefix: str) -> Iterator[dict[str, Any]]:
    offset = 0
    while found := registry.call("GET", f"/schemas?subjectPrefix={prefix}&offset={offset}&limit=1000").body:
        yield from found
        offset += len(found)


def test_an_empty_cluster_to_160_topics_and_through_kills(
    tmp_path: Path, kafka: AuthorizedKafka, registry: Registry
) -> None:
    commands = commands_for(tmp_path, kafka, registry, TOPICS)
    seed = random.randrange(2**32)
    LOG.info("seed %s", seed)
    pauses = random.Random(seed)
    for lines in KILLS:
        killed = commands.start("apply", "staging", "--wait", "120")
        assert killed.stdout is not None
        count = 0
        for line in killed.stdout:
            count += line.startswith(("created", "changed"))
            if count >= lines:
                break
        time.sleep(pauses.uniform(0, 0.5))
        assert killed.poll() is None, "it has ended before the kill"
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        plan = commands.plan("staging")
        assert not [step for step in plan["steps"] if step["is_drift"]], "what it left is no drift"
        assert [step for step in plan["steps"] if step["action"] == "create"]
        LOG.info("killed after %s lines: %s steps are left", count, len(plan["steps"]))
    for environment in ("staging", "prod"):
        started = time.monotonic()
        applied = commands.run("apply", environment, "--wait", "120")
        assert applied.status == 0, applied.errors
        LOG.info("%s: %.1f s", applied.sums, time.monotonic() - started)
        again = commands.run("apply", environment)
        assert "0 to create, 0 to change, 0 to delete, 0 refused, 0 changed by hand" in again.sums
        assert "to note" not in again.sums
    staging, prod = (everything(kafka, registry, environment) for environment in ("staging", "prod"))
    assert len(prod["topics"]) == TOPICS
    assert len(prod["schemas"]) == 2 * TOPICS
    assert len(prod["rights"]) == 2 * TOPICS + 1
    for part in prod:
        assert staging[part] == prod[part], f"what was killed and what was not differ in {part}"


class Measured(NamedTuple):
    """The time and the memory that a command took."""

    # Seconds.
    seconds: float
    # CPU seconds.
    cpu: float
    # The most memory at a time, in MiB.
    mib: float
    # What it printed.
    output: str


def measured(command: list[str]) -> Measured:
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, text=True)
        mib = 0.0
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            mib = max(mib, most_memory(process.pid))
            time.sleep(0.05)
        _, status, usage = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    assert process.returncode == 0, printed
    return Measured(time.monotonic() - started, usage.ru_utime + usage.ru_stime, mib, printed)


def most_memory(process: int) -> float:
    """The most memory of a process so far, in MiB: its own, where getrusage begins with that of its parent."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0  # it has ended


def test_1000_topics_within_limits(
    tmp_path: Path, kafka: AuthorizedKafka, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = commands_for(tmp_path, kafka, registry, MANY)
    empty = measured(commands.command("plan", "staging"))
    started = time.monotonic()
    with counted(monkeypatch) as of_apply:
        run_apply(commands, "staging")
    apply_seconds = time.monotonic() - started
    with counted(monkeypatch) as of_plan:
        run_plan(commands, "staging")
    for name, counts in (("apply", of_apply), ("plan", of_plan)):
        LOG.info("requests of %s: %s to Kafka, %s to the registry", name, dict(counts.kafka), dict(counts.registry))
    check = measured([sys.executable, "-m", "schematizer", "topics", "check", "--repository", str(commands.root)])
    plan = measured(commands.command("plan", "staging"))
    assert "0 to create, 0 to change, 0 to delete" in plan.output
    LOG.info("apply of %s topics: %.1f s", MANY, apply_seconds)
    for name, one in (("plan of an empty cluster", empty), ("check", check), ("plan", plan)):
        LOG.info("%s: %.1f s, %.1f CPU s, %.0f MiB", name, one.seconds, one.cpu, one.mib)
    assert check.cpu <= CHECK_SECONDS, "its own time: the machine may be busy"
    assert plan.seconds <= PLAN_SECONDS
    assert empty.seconds <= PLAN_SECONDS
    assert plan.mib <= PLAN_MIB
    assert of_plan.kafka.total() <= PLAN_REQUESTS
    assert of_plan.registry.total() <= PLAN_REQUESTS
    assert of_apply.registry.total() <= APPLY_REQUESTS * MANY

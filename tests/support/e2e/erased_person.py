"""A person whose row goes through every place of docs/guides/secure.md, "Erase a person's rows"; and the places.

A day of the page takes DAY_SECONDS here.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from cdc_common.settings import KafkaSettings, RegistrySettings
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.programs import environment_of
from dev.local_stack.servers.stack import Stack
from tests.support.e2e.traces import files_with, topics_with
from transformer.settings import Settings, TransformerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dev.local_stack.servers.programs import Program

_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "secure.md").read_text()
_SECTION = re.search(r"### Erase a person's rows\n(.*?)\n## ", _PAGE, re.DOTALL)
assert _SECTION is not None
SECTION = _SECTION[1]
DAY_SECONDS = 2
_DAY_MS = 86_400_000
_TIMES = ("retention.ms", "min.compaction.lag.ms", "max.compaction.lag.ms", "segment.ms", "delete.retention.ms")
SECONDS = 120.0
KEYSPACE = "person"
RAW, DEAD = f"cdc.raw.{KEYSPACE}.people", f"cdc.dead.{KEYSPACE}.people"
PEOPLE, OLD, MOVED = f"pii-cdc.{KEYSPACE}.people", f"cdc.{KEYSPACE}.moved", f"pii-cdc.{KEYSPACE}.moved-v2"
TARGET = f"pii-analysts.{KEYSPACE}.people"
_TRANSFORMERS = f"""
[[transformer]]
name = "for-analysts"
source = {{ namespace = "cdc.{KEYSPACE}", source = "people" }}
target = {{ namespace = "analysts.{KEYSPACE}", source = "people" }}

[[transformer.step]]
kind = "docs"
table = "People."
"""


def named_places() -> list[str]:
    """The first column of the page's table."""
    rows = [line.split("|")[1].strip() for line in SECTION.splitlines() if line.startswith("| ")]
    return [row for row in rows if row not in {"place", "---"}]


def commands(name: str) -> list[dict[str, str]]:
    """The options of each of the page's commands of this name."""
    text = "\n".join(re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)).replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line.startswith(name)]
    return [dict(zip(line, [*line[1:], ""], strict=True)) for line in lines]


def settings_of(option: str) -> dict[str, int]:
    """`a.ms=1,b.ms=2` of a command."""
    return {name: int(value) for name, value in (part.split("=") for part in option.split(","))}


@dataclass
class Person:
    """`key` and `value` are texts that stand nowhere else. `seen`: places in which the value was."""

    stack: Stack
    folder: Path
    key: str = field(default_factory=lambda: f"key-{secrets.token_hex(12)}")
    value: str = field(default_factory=lambda: f"value-{secrets.token_hex(12)}")
    seen: set[str] = field(default_factory=set)

    def places(self, text: str) -> dict[str, list[str]]:
        """Return files and topics that contain the text, by the page's name of each place. What the page does not name
        is under `elsewhere`.
        """
        found = self.files(text)
        for topic in sorted(topics_with(self.stack.servers.kafka, text)):
            found.setdefault(TOPICS.get(topic, "elsewhere"), []).append(topic)
        return found

    def files(self, text: str) -> dict[str, list[str]]:
        """Return what `places` returns, without asking Kafka."""
        found: dict[str, list[str]] = defaultdict(list)
        for root in self.roots():
            for file in files_with(root, text):
                found[self._place_of(file)].append(str(file))
        return dict(found)

    def roots(self) -> list[Path]:
        """Return the folders in which Cassandra, Kafka, our programs and this test write."""
        node, programs = self.stack.cassandra.cdc_nodes[0], self.stack.materializer.folder
        return [node.folder, self.stack.kafka.folder.path, programs, self.folder]

    def find_places(self, *, at_files: bool = False) -> set[str]:
        """Return the places in which the value is or was seen. `at_files`: while Kafka stands still."""
        self.seen |= set(self.files(self.value) if at_files else self.places(self.value))
        return self.seen

    def wait_for(self, *places: str) -> None:
        """Wait until the value was in all of them."""
        wait_until(lambda: self.find_places() >= set(places), f"the value in {places}", SECONDS)

    def _place_of(self, file: Path) -> str:
        if file.is_relative_to(self.stack.kafka.folder.path):
            return TOPICS.get(file.parent.name.rpartition("-")[0], "elsewhere")
        return next((place for part, place in PLACES.items() if part in str(file)), "elsewhere")


# Parts of paths, the first one that fits, and topics: by the page's names.
PLACES = {
    "/snapshots/dropped-": "Cassandra's snapshots and backups",
    "/data/": "Cassandra",
    "/commitlog/": "commit log",
    "/cdc_raw/": "`cdc_raw`",
    "/spool/": "`publisher.spool_directory`",
    "/processed/": "`publisher.processed_segments`",
    "/quarantine/": "quarantine",
    "people-99/": "unused local states",
    "/materializer-state/": "state",
    "/materializer-checkpoint/": "changelogs, snapshots",
}
_CHANGES = "change topic, target of a transformer"
TOPICS = {
    RAW: "raw topic",
    f"cdc.raw.{KEYSPACE}.moved": "raw topic",
    DEAD: "dead-letter topic",
    PEOPLE: _CHANGES,
    MOVED: _CHANGES,
    TARGET: _CHANGES,
    OLD: "change topic that a table has left",
}
UNSEEN = {
    "tombstone in a change topic, which has the key",
    "consumers",
    "`system.paxos` (conditional writes), `system.batches`, hints",
}
"""The first is sought by the key. The second are not ours. The third hold nothing here: the test makes no conditional
writes, batches or hints, which Cassandra keeps for hours.
"""


class Analysts(NamedTuple):
    """The transformer `for-analysts`, for tests.support.transformer.local_job.LocalJob."""

    stack: Stack
    folder: Path

    @property
    def topic(self) -> str:
        return PEOPLE

    @property
    def file(self) -> Path:
        file = self.folder / "transformers.toml"
        file.write_text(_TRANSFORMERS)
        return file

    def settings(self, **transformer: Any) -> Settings:  # noqa: ANN401 - settings
        servers = self.stack.servers
        return Settings(
            kafka=KafkaSettings(bootstrap_servers=servers.kafka, topic_prefix=servers.topic_prefix),
            registry=RegistrySettings(url=servers.registry),
            transformer=TransformerSettings(**transformer),
        )


def set_days(stack: Stack, topic: str, options: Mapping[str, int] = MappingProxyType({})) -> None:
    """Topics' times, as they are or as the options (ms) say, with days of DAY_SECONDS."""
    admin = AdminClient({"bootstrap.servers": stack.servers.kafka})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    known = admin.describe_configs([resource])[resource].result()
    times = {name: int(known[name].value) for name in _TIMES} | dict(options)
    alter_topic(stack, topic, {name: ms * DAY_SECONDS * 1000 // _DAY_MS for name, ms in times.items()})


def alter_topic(stack: Stack, topic: str, settings: Mapping[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": stack.servers.kafka})
    entries = [
        ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()


def run(program: Program, *arguments: str) -> str:
    """Return the output of a command of this project, with the settings of a program that runs."""
    environment = {**os.environ, **environment_of(program.settings)}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

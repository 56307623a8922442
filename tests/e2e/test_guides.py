"""Kafka's commands in the guides, as they stand there and in their order, on a broker that asks who one is.

Only the address and the passwords are this broker's. What of the guides is run elsewhere, or cannot be run, is in
tests/support/docs/runs.py; the rights that these commands give are used by test_rights.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from dev.local_stack.java.jars import KAFKA, KAFKA_TOOLS, class_path, install
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.docs.shell import Shown, fenced, pages
from tests.support.e2e.secure_page import PAGE, PASSWORDS, acls, broker_settings, client_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The class that each of Kafka's scripts starts.
CLASSES = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}
EVERY_ACL = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]  # any name
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]  # any principal
    None,  # type: ignore[arg-type]  # any host
    AclOperation.ANY,
    AclPermissionType.ANY,
)
SECONDS = 120.0
COMMANDS = [shown for page, text in pages() if page.startswith("docs/guides/") for shown in fenced(page, text)]
KAFKAS = [shown for shown in COMMANDS if shown.words[0].startswith("kafka-")]

pytestmark = [pytest.mark.exhaustive, pytest.mark.servers, pytest.mark.timeout(1800)]


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    install(KAFKA_TOOLS, print)
    with KafkaBroker(settings=broker_settings()) as running:
        yield running


@pytest.fixture
def shell(broker: KafkaBroker, tmp_path: Path) -> Path:
    """A folder with the page's admin.properties, and Kafka's scripts in `bin`."""
    [properties] = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    text = properties.replace("SASL_SSL", "SASL_PLAINTEXT").replace("…", PASSWORDS["admin"])
    (tmp_path / "admin.properties").write_text(text)
    (tmp_path / "bin").mkdir()
    for name, java_class in CLASSES.items():
        words = [str(broker.java.executable), "-XX:TieredStopAtLevel=1", "-cp"]
        words += [f"{class_path(KAFKA)}:{class_path(KAFKA_TOOLS)}", java_class]
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    return tmp_path


def test_there_are_commands_of_several_guides() -> None:
    assert {shown.words[0] for shown in KAFKAS} <= CLASSES.keys()
    assert {shown.page for shown in KAFKAS} >= {"docs/guides/secure.md", "docs/guides/size.md"}


def test_kafkas_commands_work_word_for_word(broker: KafkaBroker, shell: Path) -> None:
    admin = AdminClient(client_of(broker, "admin"))
    topics = {name for shown in KAFKAS for name in topics_of(shown)}
    for answer in admin.create_topics([NewTopic(name, 2, 1) for name in topics]).values():
        answer.result(SECONDS)
    for shown in KAFKAS:
        run(shown, broker, shell)
    found = admin.describe_acls(EVERY_ACL).result(SECONDS)
    assert set(map(str, found)) == set(map(str, acls()))


def topics_of(shown: Shown) -> list[str]:
    """The topics that a command which is not about rights alters or describes."""
    if shown.words[0] == "kafka-acls.sh":
        return []
    following = zip(shown.words, shown.words[1:], strict=False)
    return [value for option, value in following if option in {"--topic", "--entity-name"}]


def run(shown: Shown, broker: KafkaBroker, shell: Path) -> None:
    line = shown.text.replace("kafka1:9092", broker.bootstrap_servers)
    environment = {"PATH": f"{shell / 'bin'}:/usr/bin:/bin"}
    command = ["/bin/bash", "-c", line]
    done = subprocess.run(
        command, cwd=shell, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, f"{shown.page}: {line}\n{done.stdout}{done.stderr}"


def test_a_command_without_the_brokers_would_be_found(broker: KafkaBroker, shell: Path) -> None:
    words = ("kafka-acls.sh", "--add", "--allow-principal", "User:a", "--topic", "t", "--operation", "Read")
    with pytest.raises(AssertionError, match="bootstrap-server"):
        run(Shown("page", words), broker, shell)

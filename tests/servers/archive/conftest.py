"""A registry, and a topic of a broker to archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.archive.archive_run import ArchiveSetup
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield made
    made.stop()


@pytest.fixture
def setup(kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path) -> ArchiveSetup:
    made = ArchiveSetup(kafka.bootstrap_servers, registry.url, topic_prefix, str(tmp_path))
    made.make_topic()
    return made

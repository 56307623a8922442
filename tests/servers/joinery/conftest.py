"""A registry, and a scene of joins on one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.joinery.scene import Scene
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
def scene(kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path) -> Scene:
    made = Scene(kafka.bootstrap_servers, registry, topic_prefix, tmp_path)
    made.make_sources()
    return made

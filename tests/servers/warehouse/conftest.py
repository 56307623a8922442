"""A registry, a PostgreSQL server, and a topic of a broker to load."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.schematizer.postgresql import REQUIRED, PostgreSQL, new_folder, programs
from tests.support.schematizer.registry_process import Registry
from tests.support.warehouse.warehouse_run import WarehouseSetup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    if programs() is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and PostgreSQL is not installed: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgreSQL(new_folder()).start()
    yield server
    server.stop()


@pytest.fixture
def postgresql_url(postgresql: PostgreSQL) -> str:
    """An empty database."""
    return postgresql.new_database().replace("+psycopg", "")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield made
    made.stop()


@pytest.fixture
def make_setup(
    kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path
) -> Callable[[str], WarehouseSetup]:
    """Makes the setup for a warehouse by its URL."""

    def make(target: str) -> WarehouseSetup:
        made = WarehouseSetup(kafka.bootstrap_servers, registry.url, topic_prefix, str(tmp_path), target)
        made.make_topic()
        return made

    return make

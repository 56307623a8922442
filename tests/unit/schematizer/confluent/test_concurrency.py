"""Registration from many sides at once: one id for a schema, versions without gaps."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Timer
from typing import TYPE_CHECKING

import pytest

from schematizer.confluent.store import Registered, Store
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

SCHEMAS = [json.dumps({"type": "fixed", "name": "F", "size": size}) for size in range(12)]
SUBJECTS = ["a", "b", "c"]
THREADS = 8


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'registry.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    database = Database(url)
    opened = Store(database, Mirror())
    opened.set_level("", opened.level("", or_global=True).__class__.NONE)
    yield opened
    database.close()


def register_all(store: Store, order: int) -> list[Registered]:
    """Every schema under every subject, in an order of one's own."""
    pairs = [(subject, text) for text in SCHEMAS for subject in SUBJECTS]
    pairs = pairs[order * 5 % len(pairs) :] + pairs[: order * 5 % len(pairs)]
    return [store.register(subject, text) for subject, text in (pairs if order % 2 else reversed(pairs))]


def check(results: list[tuple[str, int, int, str]]) -> None:
    """`results`: (subject, version, schema id, text)."""
    ids: dict[str, set[int]] = {}
    versions: dict[str, dict[int, set[str]]] = {}
    for subject, version, schema_id, text in results:
        ids.setdefault(text, set()).add(schema_id)
        versions.setdefault(subject, {}).setdefault(version, set()).add(text)
    assert [len(found) for found in ids.values()] == [1] * len(SCHEMAS)
    assert sorted(next(iter(found)) for found in ids.values()) == list(range(1, len(SCHEMAS) + 1))
    for of_subject in versions.values():
        assert sorted(of_subject) == list(range(1, len(SCHEMAS) + 1))
        assert all(len(texts) == 1 for texts in of_subject.values())


def test_threads(store: Store) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        found = [
            version for every in pool.map(lambda order: register_all(store, order), range(THREADS)) for version in every
        ]
    check([(version.subject, version.version, version.schema_id, version.text) for version in found])


def _in_process(url: str, order: int, barrier: Barrier) -> list[tuple[str, int, int, str]]:
    barrier.wait(60)
    database = Database(url)
    found = register_all(Store(database, Mirror()), order)
    database.close()
    return [(version.subject, version.version, version.schema_id, version.text) for version in found]


@pytest.mark.usefixtures("store")
def test_processes_on_one_file(url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(3) as pool:
        barrier = manager.Barrier(3)
        pending = [pool.apply_async(_in_process, (url, order, barrier)) for order in range(3)]
        found = [version for one in pending for version in one.get(120)]
    check(found)


def test_processes_that_make_the_file_at_once(url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(4) as pool:
        barrier = manager.Barrier(4)
        pending = [pool.apply_async(_open, (url, barrier)) for _ in range(4)]
        assert {one.get(120) for one in pending} == {1}


def test_a_file_that_another_process_begins_to_write(url: str) -> None:
    """SQLite itself would fail at once: its mode cannot be changed while someone has the right to write next."""
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    done = Timer(0.3, other.close)
    done.start()
    Database(url).close()
    done.join()


def _open(url: str, barrier: Barrier) -> int:
    barrier.wait(60)
    database = Database(url)
    schema_id = Store(database, Mirror()).register("a", '"string"').schema_id
    database.close()
    return schema_id


def test_two_services_on_one_file_over_http(tmp_path: Path) -> None:
    services = [Registry(tmp_path / "registry.db").start() for _ in range(2)]
    try:
        services[0].call("PUT", "/config", {"compatibility": "NONE"})

        def register(number: int) -> list[tuple[str, int, int, str]]:
            found = []
            for text in SCHEMAS:
                answer = services[number % 2].register("a", json.loads(text))
                assert answer.status == 200, answer.body
                found.append(("a", answer.body["version"], answer.body["id"], text))
            return found

        with ThreadPoolExecutor(4) as pool:
            check([registered for every in pool.map(register, range(4)) for registered in every])
    finally:
        statuses = [service.stop() for service in services]
    assert statuses == [0, 0]

"""The registry and the catalogue on PostgreSQL: tables, plans, several instances at once, and kill -9."""

from __future__ import annotations

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, text

from dev.local_stack.process.processes import wait_until
from schematizer.catalogue.clients import ProducerRegistration
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from schematizer.registration.register import Description
from schematizer.service import Catalogue
from tests.support.schematizer.consistency import problems
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.table_differences import table_differences

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine

pytestmark = pytest.mark.servers

CLIENTS = 20
SOURCES = 4
VERSIONS = 5
LONGEST_SECONDS = 2**31 - 1
# What the registration of a new source's first schema writes.
WRITTEN = (
    *("schemas", "versions", "namespaces", "sources", "topics", "topic_schemas", "elements"),
    *("decisions", "changes", "search_documents"),
)


@pytest.fixture
def services(url: str, tmp_path: Path) -> Iterator[list[Registry]]:
    """Two instances on one database."""
    running = [Registry(tmp_path / "unused", database_url=url).start() for _ in range(2)]
    yield running
    assert [service.stop() for service in running] == [0, 0]


def users(fields: int) -> str:
    more = [{"name": f"f{number}", "type": ["null", "int"], "default": None} for number in range(fields)]
    return json.dumps(
        {"type": "record", "name": "users", "primaryKey": ["id"], "fields": [{"name": "id", "type": "int"}, *more]}
    )


def test_the_migrations_make_the_tables_of_the_model(url: str) -> None:
    database = Database(url)
    assert database.read(table_differences) == []
    database.close()


def test_instances_that_start_at_once_migrate_once(url: str) -> None:
    def open_and_register(number: int) -> int:
        database = Database(url)
        try:
            return Store(database, Mirror()).register(f"a{number}-value", '"string"').schema_id
        finally:
            database.close()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(open_and_register, range(6))) == {1}


def test_two_instances_and_twenty_clients(services: list[Registry], url: str) -> None:
    """Every client registers every schema, over both interfaces, in an order of its own."""
    services[0].call("PUT", "/config", {"compatibility": "NONE"})
    jobs = [(f"s{source}", users(fields)) for source in range(SOURCES) for fields in range(VERSIONS)]

    def client(number: int) -> list[tuple[str, str, str, int]]:
        service, found = services[number % 2], []
        for source, schema in jobs[number % len(jobs) :] + jobs[: number % len(jobs)]:
            path = "/api/v1/namespaces/cdc.shop/schemas"
            made = service.call("POST", path, {"format": "avro", "text": schema, "source": source})
            assert made.status == 200, made.body
            other = service.register(f"plain.{source}-value", json.loads(schema))
            assert other.status == 200, other.body
            assert other.body["id"] == made.body["schema_id"]
            found.append((source, schema, made.body["topic"], made.body["schema_id"]))
        return found

    with ThreadPoolExecutor(CLIENTS) as pool:
        results = [result for every in pool.map(client, range(CLIENTS)) for result in every]
    assert len(results) == CLIENTS * len(jobs)
    ids = {schema: {i for _, s, _, i in results if s == schema} for _, schema in jobs}
    assert all(len(schema_ids) == 1 for schema_ids in ids.values())  # one id for a schema, whoever asks
    assert len({next(iter(schema_ids)) for schema_ids in ids.values()}) == VERSIONS  # and no id for two
    topics = {(source, topic) for source, _, topic, _ in results}
    assert topics == {(f"s{source}", f"cdc.shop.s{source}") for source in range(SOURCES)}
    database = Database(url)
    assert database.read(problems) == []
    catalogue = Catalogue(database, Rules())
    producer = ProducerRegistration("team", "service", "cdc.shop.s0", next(iter(ids[jobs[0][1]])), LONGEST_SECONDS)
    catalogue.clients.register_producer(producer, by="test")
    census = {(count.what, count.namespace, count.state): count.number for count in catalogue.census.take()}
    assert census["topics", "cdc.shop", "read-write"] == SOURCES
    assert census["topic_schemas", "plain", "read-write"] == SOURCES * VERSIONS
    assert (census["producers", "cdc.shop", "seen"], census["producers", "cdc.shop", "late"]) == (1, 0)
    assert all(len(catalogue.history.decisions("cdc.shop", f"s{source}")) == VERSIONS for source in range(SOURCES))
    database.close()


@pytest.mark.exhaustive
def test_kill_9_in_mid_write_leaves_nothing_half_registered(services: list[Registry], url: str) -> None:
    """Either instance is killed, several times, while clients register new schemas over both interfaces."""
    services[0].call("PUT", "/config", {"compatibility": "NONE"})
    stop = threading.Event()
    counts = [0] * 6

    def client(number: int) -> None:
        count = 0
        while not stop.is_set():
            for service in services:
                text_ = users(number * 1000 + count).replace("f0", f"g{number}x{count}")
                body: Any = {"format": "avro", "text": text_, "source": f"s{number}x{count}"}
                try:
                    made = service.call("POST", "/api/v1/namespaces/cdc.shop/schemas", body)
                    service.register(f"cdc.k{number}.t{count}-value", json.loads(users(count % 7)))
                except OSError:
                    continue
                count += made.status == 200
                counts[number] = count

    with ThreadPoolExecutor(6) as pool:
        clients = [pool.submit(client, number) for number in range(6)]
        try:
            for kill in range(4):
                time.sleep(1.5)
                killed = services[kill % 2]
                assert killed.process is not None
                assert killed.stop(signal.SIGKILL) == -signal.SIGKILL
                killed.start()
            wait_until(lambda: sum(counts) > 20, "answers", 120)
        finally:
            stop.set()
        for future in clients:
            future.result(timeout=120)
    database = Database(url)
    assert database.read(problems) == []
    database.close()


@pytest.mark.exhaustive
def test_kill_9_before_each_table_of_a_registration(services: list[Registry], url: str) -> None:
    """A lock on the table holds up the transaction, and the instance dies: nothing of it is there, and the other
    instance registers the same.
    """
    engine = create_engine(url)
    with ThreadPoolExecutor(1) as pool:
        for number, table in enumerate(WRITTEN):
            dying, other = services[number % 2], services[1 - number % 2]
            body = {"format": "avro", "text": users(number), "source": "s", "owner": "team"}
            path = f"/api/v1/namespaces/cdc.{table}/schemas"
            with engine.connect() as holder:
                holder.execute(text(f"LOCK TABLE {table} IN SHARE MODE"))
                before = counts(engine)
                answer = pool.submit(dying.call, "POST", path, body)
                wait_until(lambda: in_transaction(engine, "wait_event_type = 'Lock'") > 0, f"a write to {table}", 60)
                assert dying.stop(signal.SIGKILL) == -signal.SIGKILL
                holder.rollback()
            assert isinstance(answer.exception(60), OSError)
            wait_until(lambda: in_transaction(engine) == 0, "the transaction's end", 60)
            assert counts(engine) == before, table
            made = other.call("POST", path, body)
            assert (made.status, made.body["rule"]) == (200, "first-topic")
            dying.start()
    engine.dispose()
    database = Database(url)
    assert database.read(problems) == []
    database.close()


def counts(engine: Engine) -> dict[str, int]:
    with engine.connect() as connection:
        return {table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in WRITTEN}


def in_transaction(engine: Engine, condition: str = "true") -> int:
    """Sessions of the database, but this one, that are in a transaction."""
    query = f"""
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND state <> 'idle' AND {condition}"""
    with engine.connect() as connection:
        return int(connection.execute(text(query)).scalar_one())


def test_plans_run_and_make_the_table_of_the_schema(url: str) -> None:
    """A plan from each schema to each other one gives the columns of a table that was created for it."""
    types = {
        "a": ["null", "int"],
        "b": ["null", "string"],
        "c": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}],
        "d": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "e": ["null", {"type": "array", "items": "int"}],
        "f": ["null", {"type": "string", "logicalType": "uuid"}],
    }
    base = [{"name": "id", "type": "int", "doc": "it's a number"}]
    full = [{"name": name, "type": type_, "default": None} for name, type_ in types.items()]
    changed: list[Any] = [
        {"name": "a", "type": ["null", "long"], "default": None, "doc": "wider"},
        {"name": "bb", "aliases": ["b"], "type": ["null", "string"], "default": None},
        {"name": "c", "type": ["null", "string"], "default": None},
    ]
    database = Database(url)
    catalogue = Catalogue(database, Rules())
    ids = []
    for fields in (base, base + full, base + changed):
        record = {"type": "record", "name": "r", "primaryKey": ["id"], "fields": fields}
        made = catalogue.registering.register(Description("cdc.shop", "avro", json.dumps(record)), by="test")
        ids.append(made.schema_id)
    engine = create_engine(url)
    for old in ids:
        for new in ids:
            if old != new:
                steps = catalogue.plans.make("postgresql", "stepped", old)
                steps += catalogue.plans.make("postgresql", "stepped", new, old)
                steps += catalogue.plans.make("postgresql", "fresh", new)
                with engine.begin() as connection:
                    for statement in steps:
                        connection.exec_driver_sql(statement)
                    assert columns(connection, "stepped") == columns(connection, "fresh")
                    connection.execute(text("DROP TABLE stepped"))
                    connection.execute(text("DROP TABLE fresh"))
    engine.dispose()
    database.close()


def columns(connection: Any, table: str) -> set[tuple[Any, ...]]:  # noqa: ANN401 - a Connection
    query = text(
        "SELECT column_name, data_type, numeric_precision, numeric_scale, datetime_precision, is_nullable, "
        "col_description(table_name::regclass, ordinal_position) FROM information_schema.columns WHERE table_name = :t"
    )
    return {tuple(row) for row in connection.execute(query, {"t": table})}

"""The whole path on servers that ask who one is, with the rights that docs/guides/secure.md lists and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.e2e.one_change import wait_for_a_change, wait_for_an_error
from tests.support.e2e.secure_page import PASSWORDS, acls, blocks, broker_settings, client_of, login

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.programs import Program

SECONDS = 120.0
PERSONAL = "pii-cdc.shop.people-v2"
DOCUMENTATION = """
namespace = "cdc.shop"
source = "people"

[fields.name]
pii = true
"""


def statements(*, after_first_start: bool) -> list[str]:
    """The page's CQL, in order: its last block is for after the filler's first start. The password is an ellipsis."""
    *first, last = blocks("cql")
    text = re.sub(r"--.*", "", last if after_first_start else "\n".join(first)).replace("…", PASSWORDS["reader"])
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def kafka_login(user: str) -> dict[str, programs.Setting]:
    return {f"kafka.{name}": value for name, value in login(user).items()}


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(settings=broker_settings()) as running:
        admin = AdminClient(client_of(running, "admin"))
        for answer in admin.create_acls(list(acls())).values():
            answer.result(SECONDS)
        yield running


@pytest.fixture
def cluster() -> Iterator[CassandraCluster]:
    asking = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer"}
    options = CassandraOptions(heap_mib=400, commitlog_sync_period_ms=100, yaml=asking)
    with CassandraCluster(options=options) as running:
        yield running


@pytest.fixture
def session(cluster: CassandraCluster) -> Iterator[Session]:
    superuser = PlainTextAuthProvider("cassandra", "cassandra")
    patience = {"connect_timeout": SECONDS, "control_connection_timeout": SECONDS}  # the driver's own is 5 s
    with Cluster(cluster.contact_points, port=cluster.port, auth_provider=superuser, **patience) as driver:
        session = driver.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true")
        session.execute("CREATE TABLE shop.people (id int PRIMARY KEY, name text) WITH cdc = true")
        for statement in statements(after_first_start=False):
            session.execute(statement)
        yield session


@pytest.mark.exhaustive
@pytest.mark.servers
@pytest.mark.timeout(400)
def test_all_programs_work_with_the_rights_of_the_page(
    broker: KafkaBroker, cluster: CassandraCluster, session: Session, tmp_path: Path
) -> None:
    [node], [port] = cluster.nodes, free_ports(1)
    registry = f"http://{LOCALHOST}:{port}"
    joined: dict[str, programs.Setting] = {
        "cassandra.port": cluster.port,
        "cassandra.password": PASSWORDS["reader"],
        "kafka.bootstrap_servers": broker.bootstrap_servers,
        "kafka.raw_partitions": 1,
        "registry.url": registry,
        "materializer.topics": "registry",
        "materializer.topics_seconds": 1,
    }
    where = (tmp_path, node.address, node.cdc_raw)
    filler = programs.filler(*where, {**joined, "cassandra.username": "cdc_filler"})
    with ExitStack() as stack:

        def start(program: Program) -> Program:
            stack.callback(program.stop)
            return program.start()

        announced = {"kafka.bootstrap_servers": broker.bootstrap_servers, **kafka_login("cdc-schematizer")}
        announced |= {"schematizer.registrations_topic": "cdc.registrations", "schematizer.sample_seconds": 1}
        registry_program = start(programs.schematizer(tmp_path, port, announced))
        publisher = {**joined, **kafka_login("cdc-publisher"), "cassandra.username": "cdc_publisher"}
        start(programs.publisher(*where, publisher))
        materializer = start(programs.materializer(tmp_path, {**joined, **kafka_login("cdc-materializer")}))
        start(filler)
        for statement in statements(after_first_start=True):
            session.execute(statement)
        filler.restart()
        reader, crm = client_of(broker, "reader"), client_of(broker, "crm")
        session.execute("INSERT INTO shop.people (id, name) VALUES (1, 'Ada')")
        wait_for_a_change("cdc.shop.people", reader, materializer, with_text="Ada")

        # Its name becomes personal: what is there and what comes lies under another prefix.
        (tmp_path / "people.toml").write_text(DOCUMENTATION)
        apply = [sys.executable, "-m", "schematizer", "docs", "apply", str(tmp_path / "people.toml")]
        subprocess.run([*apply, "--url", registry], check=True)
        wait_for_a_change(PERSONAL, crm, materializer, group="crm", with_text="Ada")
        session.execute("INSERT INTO shop.people (id, name) VALUES (2, 'Grace')")
        wait_for_a_change(PERSONAL, crm, materializer, group="crm", with_text="Grace")
        session.execute("INSERT INTO shop.orders (id, note) VALUES (1, 'secret')")
        wait_for_a_change("cdc.shop.orders", reader, materializer, with_text="secret")
        for topic in (PERSONAL, "cdc.raw.shop.people", "cdc.raw.shop.orders"):
            assert wait_for_an_error(topic, reader) == KafkaError.TOPIC_AUTHORIZATION_FAILED, topic
        for refused in ("topics cannot be measured", "registrations wait for Kafka"):
            assert refused not in registry_program.output()
    for log in tmp_path.glob("*.log"):
        assert not [name for name, password in PASSWORDS.items() if password in log.read_text()], log.name

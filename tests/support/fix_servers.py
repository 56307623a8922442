"""Real servers for the tests: started when the first test asks for one, shared by the whole run.

A test that hurts a server (kill, pause) starts one of its own or leaves it running as it found it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.choice import cassandra_cluster, kafka_broker
from dev.local_stack.servers.s3 import S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker

REQUEST_SECONDS = 30.0


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """A broker: `kafka.bootstrap_servers`."""
    broker = kafka_broker()
    try:
        yield broker.start()
    finally:
        broker.close(keep=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    """An S3 server: `s3.location("folder")`."""
    server = S3Server()
    try:
        yield server.start()
    finally:
        server.close(keep=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def cassandra(request: pytest.FixtureRequest) -> Iterator[CassandraCluster]:
    """Cassandra 5.0, one node, CDC on: `cassandra.contact_points`, `.port`, `.nodes[0].cdc_raw`."""
    cluster = cassandra_cluster(options=CassandraOptions(yaml={"materialized_views_enabled": True}))
    try:
        yield cluster.start()
    finally:
        cluster.close(keep=request.session.testsfailed > 0)


@pytest.fixture(scope="session")
def cql(cassandra: CassandraCluster) -> Iterator[Session]:
    """The driver's session on `cassandra`."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy(cassandra.contact_points), request_timeout=REQUEST_SECONDS
    )
    driver = Cluster(
        cassandra.contact_points,
        port=cassandra.port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=REQUEST_SECONDS,
    )
    try:
        yield driver.connect()
    finally:
        driver.shutdown()


@pytest.fixture
def fresh_keyspace(cql: Session) -> Iterator[str]:
    """A keyspace of this test's own, dropped afterwards."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    cql.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    yield name
    cql.execute(f"DROP KEYSPACE {name}")


@pytest.fixture
def topic_prefix() -> str:
    """A first part of topic names that no other test has."""
    return f"t{uuid.uuid4().hex[:12]}"

"""The whole path where Cassandra and Kafka speak TLS only to those who show a certificate."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from cassandra.cluster import Cluster

from cdc_common.clients.cassandra import connect, read_node
from cdc_common.clients.kafka import client_config
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import CassandraSettings, KafkaSettings
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.e2e.certificates import Authority
from tests.support.e2e.one_change import wait_for_a_change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.programs import Program

CONNECT_SECONDS = 120.0  # the driver's own 5 are not enough beside other servers
pytestmark = [pytest.mark.exhaustive, pytest.mark.servers, pytest.mark.timeout(400)]

PASSWORD = "of-the-stores"
LOOPBACK = [f"127.0.{third}.{fourth}" for third in range(256) for fourth in (1, 2)]  # whichever the node gets


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "certificates").mkdir()
    return Authority(tmp_path / "certificates")


@pytest.fixture
def broker(authority: Authority) -> Iterator[KafkaBroker]:
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.identity_file("broker", [LOCALHOST])),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "ssl.client.auth": "required",
    }
    with KafkaBroker(settings=settings) as running:
        yield running


@pytest.fixture
def cluster(authority: Authority) -> Iterator[CassandraCluster]:
    keystore, truststore = authority.java_stores(LOOPBACK, PASSWORD)
    encryption = {
        "enabled": True,
        "optional": True,  # the stack asks without TLS whether the node is up
        "keystore": str(keystore),
        "keystore_password": PASSWORD,
        "require_client_auth": True,
        "truststore": str(truststore),
        "truststore_password": PASSWORD,
        "store_type": "PKCS12",
    }
    yaml = {"client_encryption_options": encryption}
    with CassandraCluster(options=CassandraOptions(heap_mib=400, commitlog_sync_period_ms=100, yaml=yaml)) as running:
        yield running


def settings_of(cluster: CassandraCluster, authority: Authority) -> dict[str, programs.Setting]:
    return {
        "cassandra.port": cluster.port,
        "cassandra.ssl": True,
        "cassandra.ssl_ca_file": authority.file,
        "cassandra.ssl_identity_file": authority.identity_file("cdc"),
    }


def kafka_settings(broker: KafkaBroker, authority: Authority) -> dict[str, object]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SSL",
        "ssl_ca_file": authority.file,
        "ssl_identity_file": authority.identity_file("cdc"),
    }


@pytest.fixture
def session(cluster: CassandraCluster, authority: Authority) -> Iterator[Session]:
    context = ssl.create_default_context(cafile=authority.file)
    context.load_cert_chain(authority.identity_file("tests"))
    patience = {"connect_timeout": CONNECT_SECONDS, "control_connection_timeout": CONNECT_SECONDS}
    with Cluster(cluster.contact_points, port=cluster.port, ssl_context=context, **patience) as driver:
        session = driver.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true")
        yield session


def test_all_programs_speak_tls(
    broker: KafkaBroker, cluster: CassandraCluster, session: Session, authority: Authority, tmp_path: Path
) -> None:
    [node], [port] = cluster.nodes, free_ports(1)
    in_kafka = kafka_settings(broker, authority)
    joined: dict[str, programs.Setting] = {
        **settings_of(cluster, authority),
        **{f"kafka.{name}": str(value) for name, value in in_kafka.items()},
        "kafka.raw_partitions": 1,
        "registry.url": f"http://{LOCALHOST}:{port}",
    }
    where = (tmp_path, node.address, node.cdc_raw, joined)
    with ExitStack() as stack:

        def start(program: Program) -> Program:
            stack.callback(program.stop)
            return program.start()

        start(programs.schematizer(tmp_path, port))
        start(programs.publisher(*where))
        materializer = start(programs.materializer(tmp_path, joined))
        start(programs.filler(*where))
        session.execute("INSERT INTO shop.orders (id, note) VALUES (1, 'a')")
        config = client_config(KafkaSettings.model_validate(in_kafka))
        wait_for_a_change("cdc.shop.orders", config, materializer)


def test_a_node_that_another_authority_vouches_for_is_refused(
    cluster: CassandraCluster, authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    known: dict[str, object] = {
        name.partition(".")[2]: value for name, value in settings_of(cluster, authority).items()
    }
    known["contact_points"] = list(cluster.contact_points)
    with connect(CassandraSettings.model_validate(known)) as client:
        assert read_node(client).release == cluster.release
    other = CassandraSettings.model_validate({**known, "ssl_ca_file": Authority(tmp_path / "other").file})
    with pytest.raises(CdcError) as caught, connect(other):
        pass
    assert caught.value.code is Code.CASSANDRA_UNREACHABLE
    assert "certificate" in caught.value.problem.lower()
    missing = CassandraSettings.model_validate({**known, "ssl_identity_file": tmp_path / "none.pem"})
    with pytest.raises(CdcError) as caught, connect(missing):
        pass
    assert caught.value.code is Code.CONFIG_INVALID

"""Publisher and materializer with a registry that speaks TLS and answers those who have an API key."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from cdc_common.clients.kafka import client_config
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings, RegistrySettings
from dev.local_stack.clients import cql
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from schematizer.model.database import Database
from schematizer.security.keys import ApiKeys
from tests.support.e2e.certificates import Authority
from tests.support.e2e.one_change import wait_for_a_change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.programs import Program

pytestmark = [pytest.mark.exhaustive, pytest.mark.servers, pytest.mark.timeout(600)]


class Secured:
    """The registry's folder, and logins to it, as settings."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.port = free_ports(1)[0]
        self.authority = Authority(folder)
        self._database = Database(f"sqlite:///{folder}/registry.db")

    def settings(self) -> dict[str, programs.Setting]:
        certificate = self.authority.identity_file("registry", [LOCALHOST])
        closed = {"schematizer.open_reads": False, "schematizer.open_writes": False}
        return {**closed, "schematizer.tls_certificate_file": certificate}

    def login(self, grant: str) -> dict[str, programs.Setting]:
        key = ApiKeys(self._database).create(grant, [grant], None, by="test")
        secret = self.folder / f"{key.key.key_id}.secret"
        secret.write_text(key.secret)
        return {
            "registry.url": f"https://{LOCALHOST}:{self.port}",
            "registry.username": key.key.key_id,
            "registry.password_file": secret,
            "registry.ssl_ca_file": self.authority.file,
        }

    def client(self, username: str, password: str) -> RegistryClient:
        return RegistryClient(
            RegistrySettings(
                url=f"https://{LOCALHOST}:{self.port}",
                username=username,
                password=SecretStr(password),
                ssl_ca_file=self.authority.file,
            )
        )


@pytest.fixture
def cluster() -> Iterator[CassandraCluster]:
    with CassandraCluster(options=CassandraOptions(heap_mib=400, commitlog_sync_period_ms=100)) as running:
        yield running


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


@pytest.mark.parametrize("topics", ["template", "registry"])
def test_each_program_has_a_key_of_its_own(
    cluster: CassandraCluster, broker: KafkaBroker, tmp_path: Path, topics: str
) -> None:
    [node], registry = cluster.nodes, Secured(tmp_path / "registry")
    joined: dict[str, programs.Setting] = {
        "cassandra.port": cluster.port,
        "kafka.bootstrap_servers": broker.bootstrap_servers,
        "kafka.raw_partitions": 1,
        "materializer.topics": topics,
    }
    first = registry.login("writer:cdc.shop")
    with ExitStack() as stack:

        def start(program: Program) -> Program:
            stack.callback(program.stop)
            return program.start()

        service = programs.schematizer(registry.folder, registry.port, registry.settings())
        service._is_ready = lambda program: '"event": "ready"' in program.output()
        start(service)
        with registry.client("nobody", "nothing") as stranger, pytest.raises(CdcError) as refused:
            stranger.check_reachable()
        assert refused.value.code is Code.REGISTRY_REFUSED
        start(programs.publisher(tmp_path, node.address, node.cdc_raw, {**joined, **first}))
        materializer = start(programs.materializer(tmp_path, {**joined, **registry.login("writer:cdc.shop")}))
        start(programs.filler(tmp_path, node.address, node.cdc_raw, joined))
        with cql.connect(cluster.contact_points, cluster.port) as client:
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            client.execute(f"CREATE KEYSPACE shop WITH replication = {replication}")
            client.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true")
            client.execute("INSERT INTO shop.orders (id, note) VALUES (1, 'a')")
        config = client_config(KafkaSettings(bootstrap_servers=broker.bootstrap_servers))
        wait_for_a_change("cdc.shop.orders", config, materializer)

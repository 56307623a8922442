"""SERVERS=containers on an engine in memory, and what is said where there is none."""

from __future__ import annotations

import importlib
import ipaddress
import json
import os
import re
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.servers import cassandra, kafka
from dev.local_stack.servers.choice import cassandra_cluster, kafka_broker
from dev.local_stack.servers.container_network import ContainerNetwork
from dev.local_stack.servers.containers import KAFKA_IMAGE, ContainerProcess
from tests.support import fake_docker
from tests.support.docker_api import CONTAINER, LOG, NETWORK, DockerApi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.fake_docker import FakeContainer, FakeEngine


ON_THE_NETWORK = {"network": "network", "networking_config": {"network": {"ipv4_address": LOCALHOST}}}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    monkeypatch.setattr(ContainerNetwork, "address", lambda *_: LOCALHOST)  # what listens for a container is here
    return fake_docker.install(monkeypatch)


@pytest.fixture
def listening(engine: FakeEngine) -> Iterator[list[socket.socket]]:
    """Each container that starts is a Kafka that works: it says so, and listens where its settings say."""
    sockets: list[socket.socket] = []

    def start(container: FakeContainer) -> None:
        container.output = f"INFO {kafka.READY}\n"
        sockets.append(socket.create_server((LOCALHOST, port_of(container))))

    engine.on_start = start
    yield sockets
    for server in sockets:
        server.close()


def port_of(container: FakeContainer) -> int:
    """The port of the listener in the server.properties that the container gets."""
    [folder] = container.volumes
    with open(f"{folder}/server.properties", encoding="utf-8") as file:  # noqa: PTH123 - a folder's name as text
        found = re.search(r"^listeners=PLAINTEXT://127\.0\.0\.1:(\d+),", file.read(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_an_unknown_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "clouds")
    with pytest.raises(CdcError, match="SERVERS=clouds is not known"):
        kafka_broker()


def test_no_engine_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "containers")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    for server in (kafka_broker(), cassandra_cluster()):
        with pytest.raises(CdcError) as caught:
            server.start()
        server.close()
        assert caught.value.code is Code.STACK_MISSING
        assert "containers" in str(caught.value)


def test_without_testcontainers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SERVERS", "containers")
    monkeypatch.setitem(sys.modules, "testcontainers.core.network", None)
    with pytest.raises(CdcError, match="testcontainers, which is not installed") as caught:
        kafka_broker(folder=tmp_path).start()
    assert "[containers]" in caught.value.fix


def test_an_engine_that_refuses_is_one_clear_error(engine: FakeEngine, tmp_path: Path) -> None:
    def refuse(container: FakeContainer) -> None:
        raise fake_docker.DockerException(f"pull access denied for {container.image}")

    engine.on_start = refuse
    with pytest.raises(CdcError, match="pull access denied for apache/kafka") as caught:
        kafka_broker(folder=tmp_path).start()
    assert caught.value.code is Code.STACK_MISSING


def test_a_broker_starts(engine: FakeEngine, listening: list[socket.socket], tmp_path: Path) -> None:
    """Its own image and tools, our settings, address and port, in its folder, as this user."""
    broker = kafka_broker(settings={"num.network.threads": "3"}, folder=tmp_path).start()
    [container] = engine.containers
    assert broker.is_running
    assert container.image == KAFKA_IMAGE == "apache/kafka:4.1.0"
    assert container.volumes == {str(tmp_path): (str(tmp_path), "rw")}
    assert container.options == {
        "entrypoint": "/bin/bash",
        "user": f"{os.getuid()}:{os.getgid()}",
        "working_dir": str(tmp_path),
        **ON_THE_NETWORK,
    }
    flag, script = container.command
    formatted, _, started = script.partition(" && ")
    properties = tmp_path / "server.properties"
    assert flag == "-c"
    assert re.fullmatch(
        rf"/opt/kafka/bin/kafka-storage\.sh format --ignore-formatted -t [\w]+ -c {properties}", formatted
    )
    assert started == f"exec /opt/kafka/bin/kafka-server-start.sh {properties}"
    assert "num.network.threads=3\n" in properties.read_text()
    assert listening[0].getsockname()[1] == broker.port
    assert broker.bootstrap_servers == f"{LOCALHOST}:{broker.port}"
    assert container.environment["KAFKA_HEAP_OPTS"] == f"-Xmx{broker.heap_mib}m"
    assert container.environment["KAFKA_LOG4J_OPTS"].endswith((tmp_path / "log4j2.xml").as_uri())
    assert kafka.READY in broker.log.read_text(), "its log is where a child's would be"


def test_a_broker_stops_and_starts_again_on_its_files(
    engine: FakeEngine, listening: list[socket.socket], tmp_path: Path
) -> None:
    broker = kafka_broker(folder=tmp_path).start()
    (tmp_path / "data").mkdir()
    port = broker.port
    broker.stop()
    assert not broker.is_running
    assert broker.process is not None
    assert broker.process.exit_status == -15
    listening.pop().close()
    broker.start()
    first, second = engine.containers
    assert (first.is_removed, second.is_removed) == (True, False)
    assert port_of(second) == broker.port == port
    broker.kill()
    assert broker.process.exit_status == -9
    broker.close()
    assert second.is_removed


def test_a_broker_is_paused_and_resumed(engine: FakeEngine, listening: list[socket.socket], tmp_path: Path) -> None:
    broker = kafka_broker(folder=tmp_path).start()
    [container] = engine.containers
    assert listening
    broker.pause()
    assert container.is_paused
    broker.resume()
    broker.resume()
    assert not container.is_paused
    broker.pause()
    broker.stop()
    assert container.exit_code == fake_docker.TERMINATED, "it is resumed first, or it would not hear SIGTERM"


def test_a_broker_whose_ports_were_taken_gets_others(
    engine: FakeEngine, listening: list[socket.socket], tmp_path: Path
) -> None:
    works, ports = engine.on_start, []

    def start(container: FakeContainer) -> None:
        ports.append(port_of(container))
        if len(ports) == 1:
            container.output, container.exit_code = "java.net.BindException: Address already in use\n", 1
        else:
            works(container)

    engine.on_start = start
    broker = kafka_broker(folder=tmp_path).start()
    assert len(set(ports)) == 2
    assert ports[1] == broker.port == listening[0].getsockname()[1]


def test_a_broker_that_ends_is_told_with_its_log(engine: FakeEngine, tmp_path: Path) -> None:
    def end(container: FakeContainer) -> None:
        container.output, container.exit_code = "FATAL no space left\n", 1

    engine.on_start = end
    broker = kafka_broker(folder=tmp_path)
    with pytest.raises(CdcError, match="FATAL no space left") as caught:
        broker.start()
    assert caught.value.code is Code.SERVER_FAILED
    assert broker.log.read_text() == "FATAL no space left\n"


@pytest.mark.parametrize("version", ["5.0", "3.11"])
def test_a_node_starts_and_answers_nodetool(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The official image of the release, with our cassandra.yaml, ports and folders, and nodetool inside."""
    monkeypatch.setattr(cassandra, "speaks_cql", lambda *_: True)
    cluster = cassandra_cluster(version, folder=tmp_path).start()
    [node], [container] = cluster.nodes, engine.containers
    assert container.image == f"cassandra:{cluster.release}"
    assert container.options["entrypoint"] == "/opt/cassandra/bin/cassandra"
    assert container.command == ["-f", "-R"]
    assert container.options.items() >= ON_THE_NETWORK.items()
    assert container.volumes == {str(node.folder): (str(node.folder), "rw")}
    assert container.environment["MAX_HEAP_SIZE"] == f"{cluster.options.heap_mib}M"
    options = container.environment["JVM_EXTRA_OPTS"].split()
    config = node.folder / "conf" / "cassandra.yaml"
    assert f"-Dcassandra.config={config.as_uri()}" in options
    assert f"-Dcassandra.jmx.local.port={node.jmx_port}" in options
    written = json.loads(config.read_text())
    assert (written["rpc_address"], written["native_transport_port"]) == (node.address, node.port)
    assert written["cdc_raw_directory"] == str(node.cdc_raw)
    assert node.cdc_raw.is_dir(), "the publisher reads it from outside"

    container.answers = lambda command: (0, f"did {command[-1]}".encode())
    assert node.nodetool("flush", "shop") == "did shop"
    assert container.executed == [["nodetool", "-h", "127.0.0.1", "-p", str(node.jmx_port), "flush", "shop"]]
    container.answers = lambda _: (2, b"no such keyspace")
    with pytest.raises(CdcError, match="refused nodetool flush nowhere: no such keyspace"):
        node.nodetool("flush", "nowhere")
    node.stop()
    assert node.process is not None
    assert node.process.exit_status == -15
    cluster.close()
    assert container.is_removed
    assert engine.networks == 0


def test_nodes_have_addresses_of_a_network_of_their_own() -> None:
    network = ContainerNetwork()
    addresses = [ipaddress.ip_address(network.address(number)) for number in (1, 2, 3)]
    block = ipaddress.ip_network(f"{addresses[0]}/24", strict=False)
    assert len(set(addresses)) == 3
    assert all(address in block and address.is_private for address in addresses)


@pytest.mark.timeout(60)
def test_the_real_client_asks_an_engine_for_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where testcontainers is installed: it and docker-py take all that we say, and Docker's API gets it."""
    pytest.importorskip("testcontainers.core.container")
    config = importlib.import_module("testcontainers.core.config").testcontainers_config
    monkeypatch.setattr(config, "ryuk_disabled", True)  # its reaper is a container of its own
    with DockerApi() as api:
        monkeypatch.setenv("DOCKER_HOST", api.url)
        network = ContainerNetwork()
        network.create()
        made = ContainerProcess(
            "one",
            "image:1",
            ("/bin/run", "-f"),
            log=tmp_path / "log",
            folder=tmp_path,
            environment={"A": "b"},
            network=network,
            address=network.address(2),
        )
        assert api.created["Image"] == "image:1"
        assert (api.created["Entrypoint"], api.created["Cmd"]) == (["/bin/run"], ["-f"])
        assert api.created["Env"] == ["A=b"]
        assert (api.created["User"], api.created["WorkingDir"]) == (f"{os.getuid()}:{os.getgid()}", str(tmp_path))
        name = api.network["Name"]
        [pool] = api.network["IPAM"]["Config"]
        assert (pool["Subnet"], pool["Gateway"]) == (f"{network.address(0)}/24", network.address(254))
        assert api.created["HostConfig"]["NetworkMode"] == name
        endpoint = api.created["NetworkingConfig"]["EndpointsConfig"][name]
        assert endpoint["IPAMConfig"] == {"IPv4Address": network.address(2)}
        assert api.created["HostConfig"]["Binds"] == [f"{tmp_path}:{tmp_path}:rw"]
        assert made.is_running
        assert made.output() == (tmp_path / "log").read_text() == LOG
        assert made.execute("nodetool", "info") == (3, "it did")
        assert api.executed == ["nodetool", "info"]
        made.pause()
        assert api.state["Paused"]
        made.stop()
        assert not api.state["Paused"]
        assert made.exit_status == -15
        api.state["Running"] = True
        made.kill()
        assert made.exit_status == -9
        made.remove()
        assert api.requests[-1] == ("DELETE", f"/containers/{CONTAINER}")
        network.remove()
        assert api.requests[-1] == ("DELETE", f"/networks/{NETWORK}")

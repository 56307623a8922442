"""The servers that a reader of the guides has: a CDC node, a node of the source datacenter, and Kafka, with logins."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING

from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import wait_until
from dev.verify.hosts.reader import CHECKOUT, JOBS, USERS
from tests.support.e2e.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dev.verify.hosts.host import Host

JOIN_SECONDS = 300.0
UNITS = "/etc/systemd/system"
OTHER_EXTRAS = "materializer,schematizer"
JOIN_KEY = 7
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
KEYSPACE = """
CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'main': 1, 'cdc': 1};
CREATE TABLE shop.orders (id int PRIMARY KEY, note text);
CREATE TABLE shop.waiting (id int PRIMARY KEY, note text) WITH cdc = true;
"""
COLUMNS = """
ALTER TABLE shop.orders ADD (user_id int, total double, status int, flags int, customer text);
CREATE TABLE shop.users (id int PRIMARY KEY, name text) WITH cdc = true;
"""
AUTH = """
ALTER KEYSPACE system_auth WITH replication = {'class': 'NetworkTopologyStrategy', 'main': 1, 'cdc': 1};
"""
CQLSHRC = "[authentication]\nusername = cassandra\npassword = cassandra\n"
FAST_START = "-Dcassandra.ring_delay_ms=8000 -Dcassandra.superuser_setup_delay_ms=0"


class Servers:
    """password: of every login. users: of Kafka."""

    def __init__(self, node: Host, source: Host, folder: Path, password: str, users: Sequence[str]) -> None:
        self.node = node
        self.password = password
        self._source = source
        self._folder = folder
        self._users = users

    def prepare(self) -> None:
        """Make what a reader has before the first page: a checkout, the units, Cassandra without CDC, an authority."""
        checkout = self._folder / "checkout"
        command = ["git", "checkout-index", "--all", f"--prefix={checkout}/"]
        subprocess.run(command, check=True, cwd=project_root())
        self.node.copy(checkout, CHECKOUT)
        self.node.run(f"cp {CHECKOUT}/deploy/systemd/*.service {UNITS} && systemctl daemon-reload && mkdir /etc/cdc")
        for host, datacenter in ((self._source, "main"), (self.node, "cdc")):
            self._prepare_cassandra(host, datacenter)
        (self._folder / "certificates").mkdir()
        authority = Authority(self._folder / "certificates")
        self.node.copy(authority.file, "/usr/local/share/ca-certificates/own.crt")
        self.node.run("update-ca-certificates")
        self.node.copy(authority.identity_file("kafka1", ("kafka1", "kafka2")), "/etc/kafka1.pem")
        self.node.run("chown kafka /etc/kafka1.pem")

    def _prepare_cassandra(self, host: Host, datacenter: str) -> None:
        host.run("mkdir -p ~/.cassandra")
        host.write("/root/.cassandra/cqlshrc", CQLSHRC)
        host.write("/etc/cassandra/cassandra-rackdc.properties", f"dc={datacenter}\nrack=rack1\n")
        host.run(f"mkdir -p {UNITS}/cassandra.service.d")
        host.write(f"{UNITS}/cassandra.service.d/fast.conf", f'[Service]\nEnvironment="JVM_EXTRA_OPTS={FAST_START}"\n')
        host.run("systemctl daemon-reload")
        host.configure_cassandra(
            f"listen_address: {host.address}\n"
            "rpc_address: 0.0.0.0\n"
            f"broadcast_rpc_address: {host.address}\n"
            "endpoint_snitch: GossipingPropertyFileSnitch\n"
            "authenticator: PasswordAuthenticator\n"
            "authorizer: CassandraAuthorizer\n"
        )
        host.run(f"sed -i 's/- seeds:.*/- seeds: \"{self._source.address}\"/' /etc/cassandra/cassandra.yaml")

    def start_cassandra(self, yaml: str) -> None:
        """Start both nodes, the CDC node with the page's settings."""
        self._source.start_cassandra()
        self.node.configure_cassandra(yaml)
        self.node.start_cassandra()
        for host in (self._source, self.node):
            wait_until(partial(_sees_both, host), f"two nodes, as seen by {host.name}", JOIN_SECONDS)
            wait_until(partial(_logs_in, host), f"the login to {host.name}", JOIN_SECONDS)
        self.cqlsh(AUTH)
        self.node.run("nodetool repair system_auth")

    def restart_cassandra(self) -> None:
        """`nodetool drain`, and what the page says next: stop, and start again."""
        self.node.run("nodetool drain && systemctl stop cassandra")
        self.node.run("journalctl --rotate && journalctl --vacuum-time=1s")
        self.node.start_cassandra()

    def make_tables(self) -> None:
        """Make shop.orders, without CDC."""
        self.cqlsh(KEYSPACE)

    def insert(self, number: int, note: str) -> None:
        """Write a row of shop.orders."""
        self.cqlsh(f"INSERT INTO shop.orders (id, note) VALUES ({number}, '{note}');")

    def insert_order_of(self, user: str) -> None:
        """Make what the jobs' pages have: shop.users with a user, and an order of that one with all its columns."""
        self.cqlsh(COLUMNS)
        self.cqlsh(
            f"INSERT INTO shop.users (id, name) VALUES ({JOIN_KEY}, '{user}');\n"
            "INSERT INTO shop.orders (id, note, user_id, total, status, flags, customer)"
            f" VALUES (70, 'an order of {user}', {JOIN_KEY}, 9.5, 1, 1, '{user}');"
        )

    def cqlsh(self, statements: str) -> None:
        """Run statements on the CDC node as its superuser."""
        self.node.run(f"cqlsh <<'END'\n{statements}\nEND")

    def start_kafka(self) -> None:
        """Start the broker, whose clients log in over TLS."""
        users = " ".join(f'user_{name}="{self.password}"' for name in self._users)
        self.node.start_kafka(
            "listener.security.protocol.map=CLIENTS:SASL_SSL,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            "sasl.enabled.mechanisms=PLAIN\n"
            f"listener.name.clients.plain.sasl.jaas.config={MODULE} required {users};\n"
            "listener.name.clients.ssl.keystore.type=PEM\n"
            "listener.name.clients.ssl.keystore.location=/etc/kafka1.pem\n"
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
            "super.users=User:admin;User:ANONYMOUS\n"
        )

    def write_admin(self, text: str) -> None:
        """Write the page's admin.properties where the reader works."""
        self.node.write(f"{CHECKOUT}/admin.properties", text.replace("…", self.password))

    def write_logins(self, text: str) -> None:
        """Write the page's file of the publisher, and the same of the other programs."""
        snapshots = "CDC_PUBLISHER__NODETOOL=/opt/cassandra/bin/nodetool\n"  # snapshot-and-audit.md says so
        folders = "CASSANDRA_HOME=/opt/cassandra\nCASSANDRA_CONF=/etc/cassandra\n"
        self._write_login("publisher", "cassandra", text + snapshots + folders)
        for name in ("filler", *JOBS):
            own = text.replace("cdc_publisher", f"cdc_{name}").replace("publisher", name)
            self._write_login(name, USERS[name], own)
        lines = [line for line in text.splitlines() if "KAFKA" in line and "PASSWORD" not in line]
        for name, user in {"schematizer": "cdc-schematizer", "topics": "topics"}.items():
            own = "\n".join(lines).replace("cdc-publisher", user)
            self.node.write(f"/etc/cdc/{name}.env", f"{own}\nCDC_KAFKA__SASL_PASSWORD={self.password}\n")
            self.node.run(f"chmod 600 /etc/cdc/{name}.env")

    def _write_login(self, name: str, user: str, text: str) -> None:
        self.node.write(f"/etc/cdc/{name}.env", text)
        for server in ("cassandra", "kafka"):
            file = f"/etc/cdc/{name}-{server}.password"
            self.node.write(file, self.password)
            self.node.run(f"chown {user} {file} && chmod 400 {file}")

    def install_other_programs(self) -> None:
        """Install what install.md installs on other machines: here all are on one."""
        wheel = '"$(ls dist/cassandra_cdc_materializer-*.whl)'
        self.node.run(f'/opt/cassandra-cdc/bin/pip install {wheel}[{OTHER_EXTRAS}]"', folder=CHECKOUT, seconds=900.0)

    def make_topics(self, *names: str) -> None:
        """Make topics that a page speaks of."""
        for name in names:
            self._kafka_topics(f"--create --topic {name} --partitions 1")

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._kafka_topics(f"--delete --topic {name}")

    def _kafka_topics(self, arguments: str) -> None:
        self.node.run(f"kafka-topics.sh --bootstrap-server localhost:29092 {arguments}")


def _sees_both(host: Host) -> bool:
    return host.try_run("nodetool status").stdout.count("\nUN ") == 2


def _logs_in(host: Host) -> bool:
    return host.try_run("cqlsh -e 'SELECT release_version FROM system.local'").returncode == 0

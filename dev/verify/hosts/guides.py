"""`make verify WHAT=guides`: the commands of the guides, word for word and in their order, on hosts with logins.

One host has a node of the CDC datacenter, Kafka (SASL_SSL, with ACLs) and all programs, as units. Another one has a
node of the source datacenter. What is not run is printed with its reason.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_common.program.cli import reported_errors
from dev.local_stack.process.paths import local_folder
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.programs import READY_LINE
from dev.verify.containers.engine import Engine
from dev.verify.containers.shop import CHANGES, wait_for_change
from dev.verify.hosts.guide_page import items_of
from dev.verify.hosts.host import SHOWN, Host, build_host
from dev.verify.hosts.job_pages import JobPages
from dev.verify.hosts.reader import CHECKOUT, USERS, Reader
from dev.verify.hosts.registry_pages import RegistryPages
from dev.verify.hosts.servers import Servers
from dev.verify.hosts.texts import NOT_RUN, PAGES, REPLACED, STATUSES, USERS_OF_KAFKA
from tests.support.e2e.one_change import wait_for_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.verify.hosts.guide_page import Item

NODE, SOURCE = "10.0.0.11", "10.0.0.10"  # the first is install.md's
SUBNET = "10.0.0.0/24"
WITHOUT_CORE = ("CDC_BUILD_CORE=0",)  # compiling it takes minutes
LATER = "after the filler's first start"
CHANGE, BEFORE, AFTER = "with rights of its own", "from before CDC", "after the topic was deleted"
RESHARDED, RESENT = "with more partitions", "in another form"
WAIT_SECONDS = 300.0


class Walk:
    """A reader's way through the guides."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._node = servers.node
        otherwise: dict[str, Callable[[Item], None]] = {
            "cdc_enabled: true*": lambda item: servers.start_cassandra(item.text),
            "# /etc/cdc.toml*": lambda item: self._node.write("/etc/cdc.toml", self.reader.own(item.text)),
            "CDC_CASSANDRA__USERNAME=cdc_publisher*": lambda item: servers.write_logins(item.text),
            "# admin.properties*": lambda item: servers.write_admin(item.text),
            "install.md: pip wheel*": self._make_wheel,
            "nodetool drain": lambda _: servers.restart_cassandra(),
            "nodetool rebuild --keyspace KEYSPACE --tokens*": self._rebuild_a_part,
            "size.md: kafka-topics.sh*": self._add_partitions,
            "consumers.md: kafka-topics.sh*": self._delete_topic,
            "curl -X DELETE 'http://registry:8081/subjects/cdc.shop.orders-value?*": self._delete_last_subject,
        }
        for name, command in {
            "schematizer": "serve",
            "publisher": "run",
            "filler": "run",
            "materializer": "run",
        }.items():
            otherwise[f"cassandra-{name} {command}"] = self._start
        self.reader = Reader(self._node, {"…'": f"{servers.password}'", **REPLACED}, NOT_RUN, otherwise, STATUSES)
        self._jobs = JobPages(servers, self.reader)
        self._registry = RegistryPages(servers, self.reader)

    def install(self) -> None:
        """From a node without CDC to a change that comes out."""
        self.reader.read("install.md", "1. Turn CDC on")
        self._servers.make_tables()
        self._servers.insert(1, BEFORE)
        self.reader.read("install.md", "2. Choose the tables")
        self._servers.start_kafka()
        self._write_admin_first()
        self.reader.read("secure.md", "Cassandra", "Kafka", only_blocks=True)
        self.reader.read("install.md", "4. Install the programs")
        self._servers.install_other_programs()
        self.reader.read("install.md", "5. Write the settings", "Choose a checkpoint location")
        self.reader.read("install.md", "6. Start and check")
        self.reader.read_later("secure.md", LATER)
        self._servers.insert(2, CHANGE)
        wait_for_change(self._node, CHANGES, CHANGE)

    def operate(self) -> None:
        """Do what an operator does with a stream that runs."""
        self.reader.read("monitor.md")
        self.reader.read("snapshot-and-audit.md")
        wait_for_change(self._node, CHANGES, BEFORE)
        self._servers.make_topics("pii-cdc.shop.people", "cdc.dead.shop.people")
        self.reader.read("secure.md")
        self._servers.delete_topic(CHANGES)
        self._servers.insert(3, AFTER)
        self._wait_for_status("CDC-093")
        self.reader.read("recover.md")
        wait_for_change(self._node, CHANGES, AFTER)
        self.reader.read("upgrade.md")
        self.reader.read("back-up.md")

    def read_the_rest(self) -> None:
        """Read the other pages: of sizes, files, consumers, the registry and the jobs beside the materializer."""
        self.reader.read("size.md")
        self._servers.insert(4, RESHARDED)
        wait_for_change(self._node, CHANGES, RESHARDED)
        for page in ("fix-errors.md", "inspect-commit-logs.md", "inspect-sstables.md", "spark.md", "testcontainers.md"):
            self.reader.read(page)
        self._jobs.read()
        self._registry.read()
        self._jobs.read_transformers()
        for page in PAGES:
            if page.startswith("consumers/"):
                self.reader.read(page)
        self._servers.insert(5, RESENT)
        wait_for_change(self._node, CHANGES, RESENT)
        self.reader.read("consumers.md")
        wait_for_text(CHANGES, {"bootstrap.servers": self._node.bootstrap_servers}, RESENT, group="after-resend")

    def remove(self) -> None:
        """The last section of install.md: its statements are for when the programs are stopped."""
        self._node.run("systemctl stop cassandra-publisher cassandra-filler")
        self.reader.read("install.md", "Remove it")

    def _write_admin_first(self) -> None:
        """The file that secure.md's commands name stands below the first of them, which links there."""
        [properties] = [item for item in items_of("secure.md") if item.kind == "properties"]
        self._servers.write_admin(properties.text)

    def _make_wheel(self, item: Item) -> None:
        """Make it without the native core, and take the one with it that the images are made of."""
        self.reader.run(item.text)
        self._node.run("rm dist/*.whl && cp /wheels/*.whl dist", folder=CHECKOUT)

    def _start(self, item: Item) -> None:
        """Start it as its unit, whose ExecStart is the same command."""
        unit = item.text.split()[0]
        executed = re.findall(r"argv\[\]=([^;]*) ;", self._node.show(unit, "ExecStart"))
        assert executed == [f"/opt/cassandra-cdc/bin/{item.text}"], executed
        self._node.start_unit(unit, lambda: READY_LINE in self._node.journal(unit))

    def _rebuild_a_part(self, item: Item) -> None:
        """The page says before it: "Make the node forget its ranges", by the statement of its section before."""
        [forget] = [one for one in items_of(item.page) if "system.available_ranges_v2" in one.text]
        self._node.run(forget.text)
        self._node.run(self.reader.own(item.text))

    def _add_partitions(self, item: Item) -> None:
        """Do it, and wait as the page says: the table stops, and all publishers see it."""
        self._node.run(item.text, folder=CHECKOUT)
        self._wait_for_status("CDC-054")

    def _delete_topic(self, item: Item) -> None:
        """The page says before it: "Stop the job"."""
        self._node.run("systemctl stop cassandra-materializer")
        self._node.run(item.text, folder=CHECKOUT)

    def _delete_last_subject(self, item: Item) -> None:
        """The page says after it: "start the job. It creates the topic again"."""
        self._node.run(item.text)
        self._node.run("journalctl --rotate && journalctl --vacuum-time=1s")
        unit = "cassandra-materializer"
        self._node.start_unit(unit, lambda: READY_LINE in self._node.journal(unit))
        self._wait_for_status("CDC-093")

    def _wait_for_status(self, text: str) -> None:
        command = self.reader.as_user("cassandra-materializer status")
        wait_until(lambda: text in self._node.try_run(command).stdout, f"{text} in {command}", WAIT_SECONDS)


def _report(reader: Reader) -> None:
    for reason, texts in reader.reasons.items():
        click.echo(f"not run ({len(texts)}): {reason}: {'; '.join(sorted(set(texts)))}")
    counts = ", ".join(f"{count} {name}" for name, count in reader.counts.items())
    click.echo(f"{len(PAGES)} guides: {counts}, {len(reader.wrong)} wrong")


@click.command(help=__doc__)
def main() -> None:
    with reported_errors(), ExitStack() as stack:
        engine = stack.enter_context(Engine(local_folder() / "engine"))
        image = build_host(engine, "host")
        network = f"cdc-guides-{os.getpid()}"
        engine.docker("network", "create", "--subnet", SUBNET, network)
        stack.callback(engine.docker, "network", "rm", network)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = Host(engine, image, network, "main1", address=SOURCE)
        node = Host(engine, image, network, "node1", ("kafka1", "kafka2", "registry"), NODE, WITHOUT_CORE)
        for host in (source, node):
            stack.callback(host.remove)
            host.start()
        servers = Servers(node, source, folder, secrets.token_hex(8), USERS_OF_KAFKA)
        servers.prepare()
        walk = Walk(servers)
        try:
            walk.install()
            walk.operate()
            walk.read_the_rest()
            walk.remove()
        finally:
            _report(walk.reader)
            if walk.reader.wrong or sys.exc_info()[0] is not None:
                for name in USERS:
                    click.echo(f"--- {name}\n{node.journal(f'cassandra-{name}')[-SHOWN:]}", err=True)
        unread = walk.reader.unread()
        for line in unread:
            click.secho(line, fg="red", err=True)
        sys.exit(1 if walk.reader.wrong or unread else 0)


if __name__ == "__main__":
    main()

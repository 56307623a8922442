"""A publisher that is started while Kafka is away: at its first start an error, later it waits and guards cdc_raw."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

import pytest
from pydantic import SecretStr

from cdc_program.cassandra import Node
from cdc_program.errors import CdcError, Code
from cdc_program.settings import KafkaSettings, NodeSettings, PublisherSettings
from local_stack.process.network import free_ports
from local_stack.servers.kafka import KafkaBroker
from publisher.inflight import Mark
from publisher.kafka import Sender, Topics
from publisher.loop import Publisher
from publisher.position import Positions
from publisher.quarantine import open_quarantine
from publisher.raw_topics import Channels, RegistryIds
from publisher.schema import Schema
from publisher.segment_disposal import open_disposal
from publisher.spool import SPOOL_PERCENT, open_spool
from publisher.status_collector import Overview, Parts
from publisher.tail import Tails
from tests.support.publisher.segment_files import SegmentFileBuilder, mutation

if TYPE_CHECKING:
    from pathlib import Path

    from publisher.status import Status

HOST = UUID(int=1)
MIB = 1 << 20
FIRST = 1_700_000_000_000
SEGMENTS = 20
CONNECT_SECONDS = 2.5  # cdc_raw is looked at once a second
AGAIN = 2  # tries, before Kafka is let answer


class Watch:
    """publisher.loss_watch.Watch of a node where all is well."""

    losing = ()
    node = Node(HOST, "test", "cdc", "5.0.0")
    told: ClassVar = {"cdc_total_space": f"{SEGMENTS + 4}MiB", "commitlog_segment_size": "1MiB"}

    def look(self) -> None:
        return


class Beside:
    """A publisher's parts, real but for the node, with a full cdc_raw and a Kafka where nothing listens; what
    `overview` says is taken each time that Kafka has been asked in vain.
    """

    def __init__(self, folder: Path) -> None:
        cdc_raw = folder / "cdc_raw"
        cdc_raw.mkdir()
        for number in range(SEGMENTS + 1):
            segment = SegmentFileBuilder(cdc_raw, FIRST + number, size=MIB)
            segment.append(mutation(number))
            segment.sync(complete=number < SEGMENTS)
        own = PublisherSettings(state_directory=folder, on_full="spool")
        kafka = KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}", connect_timeout_seconds=CONNECT_SECONDS
        )
        sender = Sender(kafka)
        self.spool = open_spool(own, HOST)
        self.positions = Positions(folder / "position.json", HOST)
        schema = Schema(folder / "schema.json", self.ask, ("cdc_filler", "filler"))
        tails = Tails(cdc_raw, self.positions, spool=self.spool)
        quarantine = open_quarantine(own)
        watch = cast("Any", Watch())
        self.overview = Overview(
            Watch.node,
            Watch.told,
            NodeSettings(cdc_raw_directory=cdc_raw),
            Parts(schema, sender, self.positions, tails, watch, quarantine, self.spool),
        )
        self.seen: list[Status] = []
        self.topics = Topics(kafka)
        ids = RegistryIds(folder / "registry.json", "http://registry", cast("Any", None))
        channels = Channels("cdc", "test", cast("Any", self), sender, ids)
        self.publisher = Publisher(
            settings=own,
            host_id=HOST.bytes,
            schema=schema,
            channels=channels,
            sender=sender,
            positions=self.positions,
            tails=tails,
            watch=watch,
            quarantine=quarantine,
            spool=self.spool,
            disposal=open_disposal(own),
            overview=self.overview,
            beat=lambda: None,
        )

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The node's answer: it has no tables."""
        return [{"schema_version": HOST}] if "schema_version" in query else []

    def check_reachable(self) -> None:
        """As publisher.kafka.Topics, which really asks; then Kafka is let answer."""
        if len(self.seen) < AGAIN:
            try:
                self.topics.check_reachable()
            finally:
                self.seen.append(self.overview.newest())

    def ensure_tables(self, _topic: str) -> None:
        return

    def read_latest(self, _topic: str) -> dict[bytes, bytes]:
        return {}


def test_at_the_first_start_it_is_an_error(tmp_path: Path) -> None:
    beside = Beside(tmp_path)
    with pytest.raises(CdcError, match="refused") as raised:
        beside.publisher.open()
    assert raised.value.code is Code.KAFKA_UNREACHABLE
    assert len(beside.seen) == 1


def test_one_that_has_published_waits_and_guards_cdc_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beside = Beside(tmp_path)
    beside.positions.move([Mark(FIRST - 1, 100, is_end=True)])
    began = time.monotonic()
    beside.publisher.open()
    assert time.monotonic() - began > AGAIN * CONNECT_SECONDS
    first, last = beside.seen
    assert first.waiting == ""  # it was being asked
    assert first.spooled > 0  # in the meantime
    assert 0 < last.used < first.full_at * SPOOL_PERCENT // 100
    assert last.waiting.startswith("CDC-020 Kafka at 127.0.0.1:")
    assert last.lag_bytes > 0
    assert last.spooled == len(beside.spool.files())
    beside.publisher._serve(0)
    said = capsys.readouterr()
    assert "CDC-020" in said.out + said.err


@pytest.mark.servers
@pytest.mark.exhaustive
def test_a_wrong_password_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{module} required username="admin" password="right" user_admin="right";'
        ),
    }
    broker = KafkaBroker(settings=settings, folder=tmp_path / "kafka")
    try:
        broker.start()
        login = KafkaSettings(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_username="admin",
            sasl_password=SecretStr("right"),
            connect_timeout_seconds=5,
        )
        Topics(login).check_reachable()
        with pytest.raises(CdcError) as raised:
            Topics(login.model_copy(update={"sasl_password": SecretStr("wrong")})).check_reachable()
        assert raised.value.code is Code.KAFKA_REFUSED
        assert "wrong" not in str(raised.value)
    finally:
        broker.close()

"""The options of a local Cassandra cluster, and what makes its nodes start fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dev.local_stack.servers.encryption import encryption_options

LOGBACK = """<configuration>
  <appender name="log" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <logger name="io.netty" level="WARN"/>
  <root level="INFO"><appender-ref ref="log"/></root>
</configuration>
"""
# A join takes over 30 s without these, and two at once are refused.
FAST_START = {
    "cassandra.ring_delay_ms": "1000",
    "cassandra.skip_wait_for_gossip_to_settle": "0",
    "cassandra.consistent.rangemovement": "false",
    "cassandra.superuser_setup_delay_ms": "0",
    "cassandra.shutdown_announce_in_ms": "100",
    "cassandra.approximate_time_precision_ms": "20",  # 2 takes 1 % of a core on 4.0 and later, without any request
}
# With 1 s a node on a busy machine may join before it knows the tables: it ends, or streams no rows.
JOINS = {"cassandra.ring_delay_ms": "8000"}
FAST_START_OF_JAVA = "-XX:TieredStopAtLevel=1"  # no optimizing compiler: a start takes 7 CPU seconds instead of 12
OPTIMIZED = ("-XX:TieredStopAtLevel=4",)  # jvm_options of a node whose own speed matters


@dataclass(frozen=True, slots=True)
class CassandraOptions:
    """The options that a cluster is started with."""

    # The heap of each JVM, in MiB.
    heap_mib: int = 640
    # The size of a commit log segment, in MiB.
    commitlog_segment_mib: int = 4
    # The time between two syncs of the commit log, in ms.
    commitlog_sync_period_ms: int = 1000
    # The space that cdc_raw may take, in MiB.
    cdc_total_space_mib: int = 2048
    # The number of tokens of each node.
    num_tokens: int = 1
    # The compressor of commit logs, one of the version's `compressors`; None for no compression.
    commitlog_compression: str | None = None
    # The keystore with the key that encrypts commit logs (encryption.make_keystore); None for no encryption.
    keystore: Path | None = None
    # The settings that are laid over each node's cassandra.yaml.
    yaml: Mapping[str, object] = field(default_factory=dict)
    # The options that are added to those of each JVM.
    jvm_options: Sequence[str] = ()

    def commit_log_form(self) -> dict[str, object]:
        """Return the options of cassandra.yaml by which commit logs are compressed or encrypted."""
        found: dict[str, object] = {}
        if self.commitlog_compression:
            found["commitlog_compression"] = [{"class_name": f"{self.commitlog_compression}Compressor"}]
        if self.keystore:
            found["transparent_data_encryption_options"] = encryption_options(self.keystore)
        return found

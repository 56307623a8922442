"""Settings that would lose changes are found, shown with a fix, and stop the publisher unless accepted by name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients.cql import connect
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from publisher.losses.loss_rules import Facts, Finding, Severity, apply_rules, unaccepted_losses
from tests.support.publisher.loss_facts import KEYSPACE, SETTINGS, WELL

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker

ROOT = Path(__file__).resolve().parents[3]
SIMPLE = replace(KEYSPACE, replication={"class": "SimpleStrategy", "replication_factor": "3"})


def worst(facts: Facts) -> list[tuple[str, Severity]]:
    return [(finding.check, finding.severity) for finding in apply_rules(facts) if finding.severity is not Severity.OK]


def test_all_is_well() -> None:
    findings = apply_rules(WELL)
    assert {finding.severity for finding in findings} == {Severity.OK}
    assert not any(finding.fix for finding in findings)
    assert {finding.check for finding in findings} == {
        "cdc_enabled",
        "cdc_block_writes",
        "cdc_on_repair_enabled",
        "commitlog_sync",
        "disk",
        "kafka",
        "replication",
        "tables",
    }


@pytest.mark.parametrize(
    ("facts", "check", "status"),
    [
        (replace(WELL, live_settings={**SETTINGS, "cdc_enabled": "false"}), "cdc_enabled", Severity.FAIL),
        (replace(WELL, live_settings={**SETTINGS, "cdc_block_writes": "false"}), "cdc_block_writes", Severity.FAIL),
        (
            replace(WELL, live_settings={**SETTINGS, "cdc_on_repair_enabled": "false"}),
            "cdc_on_repair_enabled",
            Severity.FAIL,
        ),
        (replace(WELL, live_settings={**SETTINGS, "commitlog_sync_period": "11s"}), "commitlog_sync", Severity.WARN),
        (replace(WELL, live_settings=None), "cdc_enabled", Severity.WARN),
        (replace(WELL, keyspaces=(replace(KEYSPACE, durable_writes=False),)), "durable_writes", Severity.FAIL),
        (replace(WELL, datacenter="other"), "replication", Severity.FAIL),
        (replace(WELL, keyspaces=(SIMPLE,)), "replication", Severity.FAIL),
        (
            replace(WELL, keyspaces=(replace(KEYSPACE, replication={**KEYSPACE.replication, "cdc": "1"}),)),
            "replication",
            Severity.WARN,
        ),
        (replace(WELL, free_percent=19), "disk", Severity.WARN),
        (replace(WELL, is_cdc_raw_usable=False), "cdc_raw", Severity.FAIL),
        (replace(WELL, kafka_problems=("This user may not describe the topic x: no.",)), "kafka", Severity.FAIL),
    ],
)
def test_each_is_found_alone_and_has_a_fix(facts: Facts, check: str, status: Severity) -> None:
    assert worst(facts) == [(check, status)]
    assert all(finding.fix for finding in apply_rules(facts) if finding.severity is not Severity.OK)


def test_one_datacenter_may_have_simple_strategy() -> None:
    assert worst(replace(WELL, datacenters=1, keyspaces=(SIMPLE,))) == []


def test_only_what_is_accepted_by_name_is_no_reason_to_stop() -> None:
    findings = [Finding("durable_writes", Severity.FAIL, "a", "b"), Finding("disk", Severity.WARN, "c", "d")]
    assert unaccepted_losses(findings, ["replication"]) == findings[:1]
    assert unaccepted_losses(findings, ["durable_writes"]) == []


@pytest.mark.servers
def test_a_real_node(kafka: KafkaBroker, tmp_path: Path) -> None:
    options = CassandraOptions(heap_mib=400, commitlog_segment_mib=1, yaml={"cdc_block_writes": False})
    with CassandraCluster(options=options, folder=tmp_path / "cluster") as cluster:
        [node] = cluster.nodes
        with connect([node.address], node.port) as client:
            client.execute(
                "CREATE KEYSPACE fleeting WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
                " AND durable_writes = false"
            )
            client.execute("CREATE TABLE fleeting.t (k int PRIMARY KEY) WITH cdc = true")

        def publisher(command: str, **settings: object) -> subprocess.CompletedProcess[str]:
            own = {
                "cassandra.contact_points": node.address,
                "cassandra.port": node.port,
                "kafka.bootstrap_servers": kafka.bootstrap_servers,
                "node.cdc_raw_directory": node.cdc_raw,
                "publisher.state_directory": tmp_path / "state",
                **{f"publisher.{name}": value for name, value in settings.items()},
            }
            flags = [f"--set={name}={value}" for name, value in own.items()]
            return subprocess.run(
                [sys.executable, "-m", "publisher", *flags, command],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )

        checked = publisher("check")
        assert checked.returncode == 3, checked.stderr
        lines = {line.split()[1]: line for line in checked.stdout.splitlines()}
        assert lines["cdc_enabled"].startswith("ok")
        assert lines["cdc_on_repair_enabled"].startswith("ok")
        assert lines["cdc_block_writes"].startswith("fail")
        assert lines["durable_writes"].startswith("fail")
        assert "fleeting" in lines["durable_writes"]
        assert lines["kafka"].startswith("ok")
        assert "CDC-017" in checked.stderr
        assert "Traceback" not in checked.stderr

        refused = publisher("run")
        assert refused.returncode == 3
        assert "CDC-017" in refused.stderr
        assert not (tmp_path / "state").exists()

        accepted = publisher("check", accept_loss="durable_writes,cdc_block_writes")
        assert accepted.returncode == 0, accepted.stderr
        assert "(accepted)" in accepted.stdout

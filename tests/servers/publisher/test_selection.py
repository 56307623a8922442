"""Tables that the settings exclude are skipped and counted; a table that is included again needs a snapshot."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.load import load_settings
from publisher.losses.loss_rules import Finding, Severity, apply_rules
from publisher.tables.node_schema import NodeSchema
from publisher.tables.selection import Selection
from tests.support.publisher.loss_facts import WELL
from tests.support.publisher.metrics import read_metrics
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.schema_rows import SchemaRows
from tests.support.publisher.sent import at_least, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cassandra.cluster import Session

    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

TABLES = [("shop", "orders"), ("shop", "log"), ("Other", "t")]


@pytest.mark.parametrize(
    ("include", "exclude", "taken"),
    [
        ((), (), TABLES),
        (("shop.*",), (), [("shop", "orders"), ("shop", "log")]),
        (("shop.*",), ("shop.log",), [("shop", "orders")]),
        ((), ("shop.*",), [("Other", "t")]),
        (("Other.t", "shop.log"), (), [("shop", "log"), ("Other", "t")]),
        (("other.t",), (), []),
        (("shop.orders",), ("shop.*",), []),
    ],
)
def test_exclude_goes_over_include(
    include: tuple[str, ...], exclude: tuple[str, ...], taken: list[tuple[str, str]]
) -> None:
    assert [table for table in TABLES if Selection(include, exclude).includes(*table)] == taken


def test_a_pattern_that_matches_nothing_is_reported() -> None:
    assert list(Selection(("shop.*", "shop.order"), ("Other.*", "x.*")).unmatched_patterns(TABLES)) == [
        "shop.order",
        "x.*",
    ]
    finding = next(finding for finding in apply_rules(WELL) if finding.check == "tables")
    assert finding == Finding("tables", Severity.OK, "1 tables with cdc = true are published.")
    facts = replace(WELL, excluded_tables=["shop.log"], unmatched_patterns=["x.*"])
    excluded, unmatched = (finding for finding in apply_rules(facts) if finding.check == "tables")
    assert excluded.severity is Severity.OK
    assert excluded.message.endswith("excluded by the settings: shop.log.")
    assert unmatched.severity is Severity.WARN
    assert unmatched.message.startswith("x.*, ")


@pytest.mark.parametrize("pattern", ["orders", "shop.", "*.orders", "shop.ord*", "a.b.c"])
def test_another_form_is_refused(pattern: str) -> None:
    with pytest.raises(CdcError) as caught:
        load_settings(None, {"publisher.exclude_tables": f"shop.*,{pattern}"})
    assert caught.value.code is Code.CONFIG_INVALID


def test_a_table_that_is_taken_in_again_has_a_hole_which_is_marked_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = SchemaRows()
    kept, left = node.create("ks", "a", cdc=True), node.create("ks", "b", cdc=True)

    def start(*exclude: str) -> NodeSchema:
        schema = NodeSchema(tmp_path / "schema.json", node.run_query, ("cdc_filler", "filler"), Selection((), exclude))
        schema.load()
        schema.refresh()
        return schema

    first = start("ks.b")
    assert (set(first.published), first.roles.excluded, first.excluded_names()) == ({kept}, {left}, ["ks.b"])
    assert left in first.ignored
    since = start().published[left].needs_snapshot_since
    assert since > 1_700_000_000_000_000
    assert start().published[left].needs_snapshot_since == since
    assert start().published[kept].needs_snapshot_since == 0
    start("ks.*")
    assert start().published[kept].needs_snapshot_since >= since
    said = capsys.readouterr().out
    assert said.count(Code.NEEDS_SNAPSHOT.text) == 3  # b, and then both


@pytest.mark.servers
def test_on_a_real_node(
    publisher: PublisherProcess,
    cql: Session,
    fresh_keyspace: str,
    sent: Callable[..., list[Sent]],
) -> None:
    for name in "abc":
        cql.execute(f"CREATE TABLE {fresh_keyspace}.{name} (p int PRIMARY KEY, v text) WITH cdc = true")
    publisher.settings["publisher.include_tables"] = f"{fresh_keyspace}.*"
    publisher.settings["publisher.exclude_tables"] = f"{fresh_keyspace}.b,{fresh_keyspace}.nothing"
    publisher.start()
    for name in "abc":
        cql.execute(f"INSERT INTO {fresh_keyspace}.{name} (p, v) VALUES (1, 'alone')")
    together = " ".join(f"INSERT INTO {fresh_keyspace}.{name} (p, v) VALUES (2, 'batch');" for name in "abc")
    cql.execute(f"BEGIN UNLOGGED BATCH {together} APPLY BATCH")
    for name in "ac":
        assert len(rows(sent(fresh_keyspace, name, at_least(2)))) == 2
    # Other tests may have left tables with cdc = true on this node, which are excluded too.
    eventually(lambda: read_metrics(publisher)["cdc_publisher_excluded_updates_total"] >= 2)
    ready = next(line for line in publisher.log().splitlines() if '"ready"' in line)
    excluded = [name for name in json.loads(ready)["excluded_tables"] if name.startswith(f"{fresh_keyspace}.")]
    assert excluded == [f"{fresh_keyspace}.b"]
    status, shown = publisher.command("check")
    assert status == 0, shown
    assert re.search(rf"excluded by the settings: .*{fresh_keyspace}\.b", shown)
    assert f"{fresh_keyspace}.nothing, in publisher.include_tables or exclude_tables, matches no table" in shown
    shown = publisher.command("status")[1]
    assert re.search(rf"excluded by the settings: .*{fresh_keyspace}\.b.* \(\d+ updates skipped\)", shown)
    assert publisher.stop() == 0
    publisher.settings["publisher.exclude_tables"] = ""
    publisher.start()
    assert "CDC-065" in publisher.log()
    cql.execute(f"INSERT INTO {fresh_keyspace}.b (p, v) VALUES (3, 'now')")
    [now] = rows(sent(fresh_keyspace, "b", at_least(1)))
    assert now.update is not None
    assert int.from_bytes(now.update.partition_key, "big") == 3

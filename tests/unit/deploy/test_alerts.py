"""Each alert asks for metrics that are there, fires for what is sick and not for what is well, and says what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import promql_parser
import pytest
import yaml

from tests.support.deploy.alert_rules import FILE, GROUPS, ROOT, RULES
from tests.support.deploy.promql import Sample, evaluate, selected
from tests.support.deploy.served import metrics_of, served

if TYPE_CHECKING:
    from pathlib import Path

RUNBOOK = dict(
    re.findall(r"^## (CDC-\d{3}) (\S.*)$", (ROOT / "docs" / "reference" / "errors.md").read_text(), re.MULTILINE)
)
MONITOR = (ROOT / "docs" / "guides" / "monitor.md").read_text()
ROW = re.compile(
    r"^\| `(Cdc\w+)` \| .{10,} \| .{20,} \| \[(CDC-\d{3})\]\(\.\./reference/errors\.md#([\w-]+)\) \|$", re.MULTILINE
)

PUBLISHER, FILLER, MATERIALIZER = "cassandra-publisher", "cassandra-filler", "cassandra-materializer"
REGISTRY, TRANSFORMER = "cassandra-schematizer", "cassandra-transformer"
ARCHIVE, WAREHOUSE, JOINERY = "cassandra-archive", "cassandra-warehouse", "cassandra-joinery"
PARTITION = (("topic", "cdc.raw.shop.orders"), ("partition", "3"))
MIB = 1 << 20


class Grows(NamedTuple):
    """A counter that grows steadily."""

    per_second: float


class Case(NamedTuple):
    """Metrics of a program that the alert is to fire for, and of one that it is not; the summary of the first."""

    job: str
    sick: dict[str, float | Grows]
    well: dict[str, float | Grows]
    summary: str
    is_of_all: bool = False  # one alert of all programs together
    labels: tuple[tuple[str, str], ...] = ()  # of its metrics, beside job and instance, and of the alert


def requests(status: int) -> str:
    return f'cdc_schematizer_requests_total{{method="GET", route="/subjects", status="{status}"}}'


def bucket(bound: str) -> str:
    return f'cdc_schematizer_request_seconds_bucket{{method="GET", route="/subjects", le="{bound}"}}'


FULL = "cdc_publisher_cdc_raw_full_at_bytes"
CASES = {
    "CdcPublisherDown": Case(PUBLISHER, {"up": 0}, {"up": 1}, "The publisher beside sick does not answer."),
    "CdcRawFullSoon": Case(
        PUBLISHER,
        {"cdc_publisher_cdc_raw_full_in_seconds": 1800},
        {"cdc_publisher_cdc_raw_full_in_seconds": 7200},
        "cdc_raw of sick will be full in 30m 0s.",
    ),
    "CdcRawHalfFull": Case(
        PUBLISHER,
        {"cdc_publisher_cdc_raw_bytes": 51, FULL: 100},
        {"cdc_publisher_cdc_raw_bytes": 49, FULL: 100},
        "cdc_raw of sick has been more than half full for five minutes.",
    ),
    "CdcRawFull": Case(
        PUBLISHER,
        {"cdc_publisher_cdc_raw_bytes": 101, FULL: 100},
        {"cdc_publisher_cdc_raw_bytes": 99, FULL: 100},
        "cdc_raw of sick is full. The node rejects CDC writes.",
    ),
    "CdcSegmentsSpooled": Case(
        PUBLISHER,
        {"cdc_publisher_spool_segments": 3},
        {"cdc_publisher_spool_segments": 0},
        "3 segments of sick are in the spool.",
    ),
    "CdcSegmentsStuck": Case(
        PUBLISHER,
        {"cdc_publisher_spool_stuck": 1},
        {"cdc_publisher_spool_stuck": 0},
        "cdc_raw of sick is filling, and no segment can be moved to the spool.",
    ),
    "CdcSnapshotStalled": Case(
        PUBLISHER,
        {'cdc_publisher_snapshot_idle_seconds{table="shop.orders"}': 3601},
        {'cdc_publisher_snapshot_idle_seconds{table="shop.orders"}': 3599},
        "The snapshot of shop.orders on sick has not come further for an hour.",
        labels=(("table", "shop.orders"),),
    ),
    "CdcPublisherWaits": Case(
        PUBLISHER,
        {"cdc_publisher_waiting": 1},
        {"cdc_publisher_waiting": 0},
        "The publisher beside sick waits for a server.",
    ),
    "CdcTableWaits": Case(
        PUBLISHER,
        {'cdc_publisher_waiting_table{table="shop.orders",code="CDC-021"}': 1},
        {},
        "The table shop.orders waits at sick (CDC-021).",
        labels=(("code", "CDC-021"), ("table", "shop.orders")),
    ),
    "CdcPublisherLags": Case(
        PUBLISHER,
        {"cdc_publisher_lag_seconds": 360},
        {"cdc_publisher_lag_seconds": 11},
        "The publisher beside sick is 6m 0s behind its commit log.",
    ),
    "CdcMutationsQuarantined": Case(
        PUBLISHER,
        {"cdc_publisher_quarantined_mutations": 2},
        {"cdc_publisher_quarantined_mutations": 0},
        "2 mutations of sick could not be decoded.",
    ),
    "CdcChangesAreLost": Case(
        PUBLISHER,
        {"cdc_publisher_losing_changes": 1},
        {"cdc_publisher_losing_changes": 0},
        "A setting of sick loses changes.",
    ),
    "CdcTablesNeedSnapshot": Case(
        PUBLISHER,
        {"cdc_publisher_tables_needing_snapshot": 3},
        {"cdc_publisher_tables_needing_snapshot": 0},
        "3 tables of sick lack changes and need a snapshot.",
    ),
    "CdcPublisherGrows": Case(
        PUBLISHER,
        {"process_resident_memory_bytes": 192 * MIB},
        {"process_resident_memory_bytes": 127 * MIB},
        "The publisher beside sick uses 192MiB of memory.",
    ),
    "CdcPublisherNotCompiled": Case(
        PUBLISHER, {"cdc_compiled": 0}, {"cdc_compiled": 1}, "The publisher beside sick runs as plain Python."
    ),
    "CdcFillerDown": Case(FILLER, {"up": 0}, {"up": 1}, "The filler beside sick does not answer."),
    "CdcNoFillerWrites": Case(
        FILLER,
        {"cdc_filler_writer": 0},
        {"cdc_filler_writer": 1},
        "No filler of the datacenter writes.",
        is_of_all=True,
    ),
    "CdcFillerPaused": Case(
        FILLER, {"cdc_filler_paused": 1}, {"cdc_filler_paused": 0}, "All fillers pause because of sick."
    ),
    "CdcFillerWaits": Case(
        FILLER,
        {"cdc_filler_waiting": 1},
        {"cdc_filler_waiting": 0},
        "The filler beside sick waits because of an error.",
    ),
    "CdcSegmentTooOld": Case(
        FILLER,
        {"cdc_filler_segment_age_seconds": 1260, "cdc_filler_max_segment_age_seconds": 600},
        {"cdc_filler_segment_age_seconds": 1140, "cdc_filler_max_segment_age_seconds": 600},
        "The commit log segment of sick is 21m 0s old.",
    ),
    "CdcFillerGrows": Case(
        FILLER,
        {"process_resident_memory_bytes": 112 * MIB},
        {"process_resident_memory_bytes": 95 * MIB},
        "The filler beside sick uses 112MiB of memory.",
    ),
    "CdcMaterializerDown": Case(MATERIALIZER, {"up": 0}, {"up": 1}, "The materializer on sick does not answer."),
    "CdcMaterializerWaits": Case(
        MATERIALIZER,
        {"cdc_materializer_waiting": 1},
        {"cdc_materializer_waiting": 0},
        "The materializer on sick waits for Kafka.",
    ),
    "CdcRawPartitionStopped": Case(
        MATERIALIZER,
        {"cdc_materializer_stopped_seconds": 600},
        {"cdc_materializer_stopped_seconds": 240},
        "Partition 3 of cdc.raw.shop.orders has been stopped by CDC-082 for 10m 0s.",
        labels=(*PARTITION, ("code", "CDC-082")),
    ),
    "CdcTransformerDown": Case(TRANSFORMER, {"up": 0}, {"up": 1}, "The transformers on sick do not answer."),
    "CdcTransformerStopped": Case(
        TRANSFORMER,
        {"cdc_transformer_stopped_seconds": 600},
        {"cdc_transformer_stopped_seconds": 240},
        "Partition 3 of cdc.raw.shop.orders has been stopped by CDC-095 for 10m 0s.",
        labels=(*PARTITION, ("code", "CDC-095")),
    ),
    "CdcTransformerBehind": Case(
        TRANSFORMER,
        {"cdc_transformer_lag_seconds": 1200},
        {"cdc_transformer_lag_seconds": 600},
        "The first message of partition 3 of cdc.raw.shop.orders that is not transformed is 20m 0s old.",
        labels=PARTITION,
    ),
    "CdcTransformerRetentionNear": Case(
        TRANSFORMER,
        {"cdc_transformer_retention_seconds_left": 40 * 3600},
        {"cdc_transformer_retention_seconds_left": 50 * 3600},
        "Kafka may delete messages of partition 3 of cdc.raw.shop.orders that are not transformed in 1d 16h 0m 0s.",
        labels=PARTITION,
    ),
    "CdcTransformerLagNotMeasured": Case(
        TRANSFORMER,
        {"cdc_transformer_lag_age_seconds": 660},
        {"cdc_transformer_lag_age_seconds": 31},
        "The transformers on sick measured their lag 11m 0s ago.",
    ),
    "CdcArchiveDown": Case(ARCHIVE, {"up": 0}, {"up": 1}, "The archive on sick does not answer."),
    "CdcArchiveStopped": Case(
        ARCHIVE,
        {"cdc_archive_stopped_seconds": 600},
        {"cdc_archive_stopped_seconds": 240},
        "Partition 3 of cdc.raw.shop.orders has been stopped by CDC-110 for 10m 0s.",
        labels=(*PARTITION, ("code", "CDC-110")),
    ),
    "CdcArchiveBehind": Case(
        ARCHIVE,
        {"cdc_archive_lag_seconds": 1200},
        {"cdc_archive_lag_seconds": 600},
        "The first message of partition 3 of cdc.raw.shop.orders that is not archived is 20m 0s old.",
        labels=PARTITION,
    ),
    "CdcArchiveRetentionNear": Case(
        ARCHIVE,
        {"cdc_archive_retention_seconds_left": 40 * 3600},
        {"cdc_archive_retention_seconds_left": 50 * 3600},
        "Kafka may delete messages of partition 3 of cdc.raw.shop.orders that are not archived in 1d 16h 0m 0s.",
        labels=PARTITION,
    ),
    "CdcArchiveLagNotMeasured": Case(
        ARCHIVE,
        {"cdc_archive_lag_age_seconds": 660},
        {"cdc_archive_lag_age_seconds": 31},
        "The archive on sick measured its lag 11m 0s ago.",
    ),
    "CdcArchiveTableStopped": Case(
        ARCHIVE,
        {'cdc_archive_table_stopped{table="shop.orders"}': 1},
        {'cdc_archive_table_stopped{table="shop.orders"}': 0},
        "The table shop.orders of the catalog has got no files from sick for five minutes.",
        labels=(("table", "shop.orders"),),
    ),
    "CdcArchiveMessagesRefused": Case(
        ARCHIVE,
        {'cdc_archive_refused_messages_total{topic="shop.orders"}': Grows(1)},
        {'cdc_archive_refused_messages_total{topic="shop.orders"}': 7},
        "Messages of shop.orders are not of their schema, and are in no file.",
        labels=(("topic", "shop.orders"),),
    ),
    "CdcArchiveMessagesLost": Case(
        ARCHIVE,
        {'cdc_archive_lost_messages_total{topic="shop.orders"}': Grows(1)},
        {'cdc_archive_lost_messages_total{topic="shop.orders"}': 7},
        "Messages of shop.orders were deleted before they were archived.",
        labels=(("topic", "shop.orders"),),
    ),
    "CdcArchiveSchemaDoesNotFit": Case(
        ARCHIVE,
        {'cdc_archive_new_schema_versions_total{topic="shop.orders"}': Grows(0.001)},
        {'cdc_archive_new_schema_versions_total{topic="shop.orders"}': 1},
        "A schema of shop.orders does not fit its table, and has begun another schema version.",
        labels=(("topic", "shop.orders"),),
    ),
    "CdcWarehouseDown": Case(WAREHOUSE, {"up": 0}, {"up": 1}, "The warehouse job on sick does not answer."),
    "CdcWarehouseTableStopped": Case(
        WAREHOUSE,
        {"cdc_warehouse_stopped_seconds": 600},
        {"cdc_warehouse_stopped_seconds": 240},
        "The table of cdc.raw.shop.orders has been stopped by CDC-131 for 10m 0s.",
        labels=(*PARTITION, ("code", "CDC-131")),
    ),
    "CdcWarehouseBehind": Case(
        WAREHOUSE,
        {"cdc_warehouse_lag_seconds": 1200},
        {"cdc_warehouse_lag_seconds": 600},
        "The first message of cdc.raw.shop.orders that is not loaded is 20m 0s old.",
        labels=PARTITION,
    ),
    "CdcWarehouseRetentionNear": Case(
        WAREHOUSE,
        {"cdc_warehouse_retention_seconds_left": 40 * 3600},
        {"cdc_warehouse_retention_seconds_left": 50 * 3600},
        "Kafka may delete messages of cdc.raw.shop.orders that are not loaded in 1d 16h 0m 0s.",
        labels=PARTITION,
    ),
    "CdcWarehouseLagNotMeasured": Case(
        WAREHOUSE,
        {"cdc_warehouse_lag_age_seconds": 660},
        {"cdc_warehouse_lag_age_seconds": 31},
        "The warehouse job on sick measured its lag 11m 0s ago.",
    ),
    "CdcJoineryDown": Case(JOINERY, {"up": 0}, {"up": 1}, "The job of joins on sick does not answer."),
    "CdcJoineryPartitionStopped": Case(
        JOINERY,
        {"cdc_joinery_stopped_seconds": 600},
        {"cdc_joinery_stopped_seconds": 240},
        "cdc.raw.shop.orders-3 has been stopped by CDC-155 for 10m 0s.",
        labels=(*PARTITION, ("code", "CDC-155")),
    ),
    "CdcJoineryBehind": Case(
        JOINERY,
        {"cdc_joinery_lag_seconds": 1200},
        {"cdc_joinery_lag_seconds": 600},
        "The first message of cdc.raw.shop.orders-3 that is not joined is 20m 0s old.",
        labels=PARTITION,
    ),
    "CdcJoineryRetentionNear": Case(
        JOINERY,
        {"cdc_joinery_retention_seconds_left": 40 * 3600},
        {"cdc_joinery_retention_seconds_left": 50 * 3600},
        "Kafka may delete messages of cdc.raw.shop.orders-3 that are not joined in 1d 16h 0m 0s.",
        labels=PARTITION,
    ),
    "CdcJoineryLoadsLong": Case(
        JOINERY,
        {'cdc_joinery_loading_partitions{join="orders"}': 3},
        {'cdc_joinery_loading_partitions{join="orders"}': 0},
        "3 partitions of the join orders have loaded their inputs for 45 minutes.",
        labels=(("join", "orders"),),
    ),
    "CdcNodeNotTruncated": Case(
        MATERIALIZER,
        {"cdc_materializer_untruncated_raw_partitions": 1},
        {"cdc_materializer_untruncated_raw_partitions": 0},
        "A table that was truncated lacks the rows of a node that did not take part.",
    ),
    "CdcRetentionNear": Case(
        MATERIALIZER,
        {"cdc_materializer_retention_seconds_left": 40 * 3600},
        {"cdc_materializer_retention_seconds_left": 50 * 3600},
        "Kafka may delete unread messages of partition 3 of cdc.raw.shop.orders in 1d 16h 0m 0s.",
        labels=PARTITION,
    ),
    "CdcRetentionVeryNear": Case(
        MATERIALIZER,
        {"cdc_materializer_retention_seconds_left": 3600},
        {"cdc_materializer_retention_seconds_left": 13 * 3600},
        "Kafka may delete unread messages of partition 3 of cdc.raw.shop.orders in 1h 0m 0s.",
        labels=PARTITION,
    ),
    "CdcLagNotMeasured": Case(
        MATERIALIZER,
        {"cdc_materializer_lag_age_seconds": 660},
        {"cdc_materializer_lag_age_seconds": 31},
        "The materializer on sick measured its lag 11m 0s ago.",
    ),
    "CdcRegistryDown": Case(REGISTRY, {"up": 0}, {"up": 1}, "The schema registry on sick does not answer."),
    "CdcRegistryDatabaseFails": Case(
        REGISTRY,
        {"cdc_schematizer_database_usable": 0},
        {"cdc_schematizer_database_usable": 1},
        "The database of the schema registry on sick cannot be used.",
    ),
    "CdcRegistryErrors": Case(
        REGISTRY,
        {requests(200): Grows(5), requests(500): Grows(0.25)},
        {requests(200): Grows(5), requests(404): Grows(2), requests(500): 3},
        "The schema registry on sick has answered requests by errors of its own for five minutes.",
    ),
    "CdcRegistrySlow": Case(
        REGISTRY,
        {bucket("1.0"): Grows(98), bucket("5.0"): Grows(100), bucket("+Inf"): Grows(100)},
        {bucket("1.0"): Grows(99.5), bucket("5.0"): Grows(100), bucket("+Inf"): Grows(100)},
        "One of a hundred requests to the schema registry on sick takes 3s.",
    ),
    "CdcProducersLate": Case(
        REGISTRY,
        {'cdc_schematizer_producers{namespace="cdc.shop", state="late"}': 2},
        {'cdc_schematizer_producers{namespace="cdc.shop", state="late"}': 0},
        "2 producers of the namespace cdc.shop are late.",
        labels=(("namespace", "cdc.shop"), ("state", "late")),
    ),
    "CdcConsumersLate": Case(
        REGISTRY,
        {'cdc_schematizer_consumers{namespace="cdc.shop", state="late"}': 1},
        {'cdc_schematizer_consumers{namespace="cdc.shop", state="late"}': 0},
        "1 consumers of the namespace cdc.shop are late.",
        labels=(("namespace", "cdc.shop"), ("state", "late")),
    ),
}


def own_labels(case: Case, *, is_sick: bool) -> frozenset[tuple[str, str]]:
    return frozenset({("job", case.job), ("instance", "sick" if is_sick else "well"), *case.labels})


def samples(case: Case, *, is_sick: bool) -> list[Sample]:
    labels = own_labels(case, is_sick=is_sick)
    return [
        selected(name, 0.0, value.per_second, labels)
        if isinstance(value, Grows)
        else selected(name, float(value), 0.0, labels)
        for name, value in (case.sick if is_sick else case.well).items()
    ]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_one_that_prometheus_takes(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    if "for" in rule:
        promql_parser.parse_duration(rule["for"])
    asked = metrics_of(rule["expr"])
    assert asked
    assert asked <= served()
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description", "action", "code"}


def test_no_two_have_one_name() -> None:
    assert len(RULES) == sum(len(group["rules"]) for group in GROUPS)
    assert len({group["name"] for group in GROUPS}) == len(GROUPS)
    assert all(group.keys() == {"name", "rules"} for group in GROUPS)


@pytest.mark.parametrize("alert", RULES)
def test_it_fires_for_what_is_sick(alert: str) -> None:
    case = CASES[alert]
    sick, well = samples(case, is_sick=True), samples(case, is_sick=False)
    fired = evaluate(RULES[alert]["expr"], sick if case.is_of_all else [*sick, *well])
    assert list(fired) == ([frozenset()] if case.is_of_all else [own_labels(case, is_sick=True)])
    assert evaluate(RULES[alert]["expr"], [*sick, *well] if case.is_of_all else well) == {}
    summary = re.sub(r"\\\{\\\{.*?\\\}\\\}", ".+", re.escape(RULES[alert]["annotations"]["summary"]))
    assert re.fullmatch(summary, case.summary)
    texts = " ".join(RULES[alert]["annotations"].values())
    for asked in re.findall(r"\{\{(.*?)\}\}", texts):
        assert re.fullmatch(r" \$labels\.\w+ | \$value( \| humanize(Duration|1024))? ", asked)
        assert asked.strip().partition("$labels.")[2] in {"", "instance", *dict(case.labels)}
        assert "$labels" not in asked or not case.is_of_all, "a sum has no labels"


def test_prometheus_itself_says_the_same(tmp_path: Path) -> None:
    """Its own check of the rules, and its own evaluation of the cases, with the summaries that come out."""
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip(
            "promtool, of Prometheus, is not on the PATH; only tests/support/deploy/promql.py evaluates the cases"
        )
    file = tmp_path / "cases.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "tests": [promtool_test(name) for name in RULES]}))
    for command in (["check", "rules", "--lint-fatal", str(FILE)], ["test", "rules", str(file)]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def promtool_test(alert: str) -> dict[str, Any]:
    """Tests constant series over an hour: the alert fires at the end, and at the beginning if it need not last."""
    rule, case = RULES[alert], CASES[alert]
    all_samples = [*samples(case, is_sick=True), *([] if case.is_of_all else samples(case, is_sick=False))]
    own = {} if case.is_of_all else {"instance": "sick", "job": case.job, **dict(case.labels)}
    labels = {**rule["labels"], **own}
    annotations = {**rule["annotations"], "summary": case.summary}
    fires = {"alertname": alert, "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}]}
    return {
        "interval": "1m",
        "input_series": [
            {
                "series": sample.name + "{" + ", ".join(f'{name}="{value}"' for name, value in sample.labels) + "}",
                "values": f"{sample.value}+{60 * sample.growth}x60",
            }
            for sample in all_samples
        ],
        "alert_rule_test": [
            {"eval_time": "60m", **fires},
            *([{"eval_time": "0m", "alertname": alert, "exp_alerts": []}] if "for" in rule else []),
        ],
    }


def test_each_alert_says_what_to_do() -> None:
    """Its line in monitor.md, which `make docs-reference` writes, leads to the section of its code."""
    rows = {alert: (code, anchor) for alert, code, anchor in ROW.findall(MONITOR)}
    assert list(rows) == list(RULES)
    for alert, (code, anchor) in rows.items():
        assert code == RULES[alert]["annotations"]["code"]
        assert anchor == anchor_of(f"{code} {RUNBOOK[code]}")


def anchor_of(heading: str) -> str:
    """Return the anchor that Git hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_a_wrong_name_would_be_noticed() -> None:
    assert not metrics_of("rate(cdc_publisher_mutation_total[1m])") <= served()
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        metrics_of("rate(cdc_publisher_mutations_total[1m]")

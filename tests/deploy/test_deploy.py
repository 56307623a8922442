"""Alerts and dashboard ask for metrics that are there; each alert has its paragraph; settings in examples exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import promql_parser
import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector

from cdc_program.describe import setting
from cdc_program.metrics import Collected
from filler.status import Status as FillerStatus
from filler.status import metrics as filler_metrics
from publisher.status import Status, metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
PANELS = json.loads((DEPLOY / "grafana" / "publishers.json").read_text())["panels"]


def served() -> set[str]:
    """The names of all samples that a publisher and a filler serve."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    busy = Status("host", "cluster", "5.0.8", is_compiled=True, lag_seconds=1, log_latency_seconds=1, seconds_to_full=1)
    registry.register(Collected(lambda: metrics(busy)))
    registry.register(Collected(lambda: filler_metrics(FillerStatus("host", "cluster", "5.0.8", 600.0, 1 << 25))))
    return {sample.name for family in registry.collect() for sample in family.samples} | {"up"}


def metrics_of(expression: str) -> set[str]:
    """ValueError if it is no PromQL."""
    return set(re.findall(r"\b(?:cdc|process)_\w+|\bup\b", promql_parser.parse(expression).prettify()))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_can_fire_and_says_what_to_do(rule: dict[str, Any]) -> None:
    asked = metrics_of(rule["expr"])
    assert asked
    assert asked <= served()
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description", "code"}
    assert f"## {rule['annotations']['code']} " in (ROOT / "docs" / "runbook.md").read_text()


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_something(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        asked = metrics_of(target["expr"])
        assert asked
        assert asked <= served()


def test_a_wrong_name_would_be_noticed() -> None:
    assert not metrics_of("rate(cdc_publisher_mutation_total[1m])") <= served()
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        metrics_of("rate(cdc_publisher_mutations_total[1m]")


def test_the_pod_has_no_readiness_probe_on_its_sidecars_and_knows_its_settings() -> None:
    pod = yaml.safe_load((DEPLOY / "kubernetes" / "cassandra.yaml").read_text())["spec"]["template"]["spec"]
    sidecars = [container for container in pod["containers"] if container["name"] != "cassandra"]
    assert [container["name"] for container in sidecars] == ["publisher", "filler"]
    assert not any("readinessProbe" in container for container in sidecars)
    names = [entry["name"] for container in sidecars for entry in container["env"]]
    names += re.findall(r"\b(CDC_[A-Z]+__[A-Z_]+)=", (DEPLOY / "images" / "Dockerfile").read_text())
    assert [setting(name) for name in settings_of(names)]


def settings_of(variables: list[str]) -> Iterator[str]:
    """`CDC_TABLE__KEY` → `table.key`."""
    for variable in variables:
        table, key = variable.removeprefix("CDC_").lower().split("__")
        yield f"{table}.{key}"

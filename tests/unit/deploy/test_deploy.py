"""The dashboard asks for metrics that are there; settings in examples exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cdc_program.describe import setting
from tests.support.deploy.alert_rules import RULES
from tests.support.deploy.served import metrics_of, served

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "images" / "Dockerfile").read_text()
DASHBOARDS = {file.stem: json.loads(file.read_text())["panels"] for file in (DEPLOY / "grafana").glob("*.json")}
PANELS = [panel for panels in DASHBOARDS.values() for panel in panels]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_something(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        asked = metrics_of(target["expr"])
        assert asked
        assert asked <= served()


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_lie_beside_each_other(name: str) -> None:
    panels = DASHBOARDS[name]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert {(place["w"], place["h"], place["x"] % 12, place["y"] % 8) for place in places} == {(12, 8, 0, 0)}


def test_the_dashboards_show_what_the_alerts_ask_for() -> None:
    shown = {name for panel in PANELS for target in panel["targets"] for name in metrics_of(target["expr"])}
    asked = {name for rule in RULES.values() for name in metrics_of(rule["expr"])}
    assert asked - shown == {"up", "cdc_filler_writer", "cdc_publisher_spool_segments", "cdc_publisher_spool_stuck"}


POD = yaml.safe_load((DEPLOY / "kubernetes" / "cassandra.yaml").read_text())["spec"]["template"]["spec"]
SIDECARS = {each["name"]: each for each in POD["containers"] if each["name"] != "cassandra"}


def test_the_pod_has_sidecars_that_take_it_out_of_service_for_nothing() -> None:
    assert list(SIDECARS) == ["publisher", "filler"]
    volumes = {each["name"] for each in POD["volumes"]} | {"data"}
    for name, sidecar in SIDECARS.items():
        assert "readinessProbe" not in sidecar
        [port] = sidecar["ports"]
        assert sidecar["livenessProbe"]["httpGet"] == {"path": "/health", "port": port["name"]}
        assert port["containerPort"] == setting(f"{name}.operations_port").default
        assert {mount["name"] for mount in sidecar["volumeMounts"]} <= volumes
        assert sidecar["securityContext"]["allowPrivilegeEscalation"] is False
        unit = (DEPLOY / "systemd" / f"cassandra-{name}.service").read_text()
        assert f"MemoryMax={sidecar['resources']['limits']['memory']}".removesuffix("i") in unit.splitlines()


def test_pod_and_images_know_their_settings() -> None:
    names = [entry["name"] for sidecar in SIDECARS.values() for entry in sidecar["env"]]
    names += re.findall(r"\b(CDC_[A-Z]+__[A-Z_]+)=", DOCKERFILE)
    assert [setting(name) for name in settings_of(names)]


def test_each_image_starts_its_program() -> None:
    """Whether it builds cannot be seen without an engine; that each program has its stage, entry and port can."""
    stages = dict(re.findall(r"^FROM \S+ AS (\w+)\n((?:(?!FROM ).*\n?)*)", DOCKERFILE, re.MULTILINE))
    for unit in (DEPLOY / "systemd").glob("*.service"):
        program = unit.stem.removeprefix("cassandra-")
        assert f"[{program}]" in stages[program]
        assert f'ENTRYPOINT ["cassandra-{program}"]' in stages[program]
        command = re.findall(r"^ExecStart=\S+ (\w+)$", unit.read_text(), re.MULTILINE)
        assert re.findall(r'^CMD \["(\w+)"\]$', stages[program], re.MULTILINE) == command
        assert "USER cdc" in stages[program]
    for name in SIDECARS:
        assert f"EXPOSE {setting(f'{name}.operations_port').default}" in stages[name]


def settings_of(variables: list[str]) -> Iterator[str]:
    """`CDC_TABLE__KEY` → `table.key`."""
    for variable in variables:
        table, key = variable.removeprefix("CDC_").lower().split("__")
        yield f"{table}.{key}"

"""The dashboard asks for metrics that are there; settings in examples exist."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from packaging.requirements import Requirement

from cdc_common.settings.describe import all_settings, setting
from tests.support.deploy.alert_rules import RULES
from tests.support.deploy.dashboards import DASHBOARDS, PANELS
from tests.support.deploy.promql import evaluate
from tests.support.deploy.served import metric_names, scraped

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "images" / "Dockerfile").read_text()
ALL_PANELS = [panel for panels in PANELS.values() for panel in panels]


@pytest.mark.parametrize("panel", ALL_PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_something(panel: dict[str, Any]) -> None:
    """The programs are busy with everything. Each line has its own name, made of labels that it has."""
    samples = scraped()
    for target in panel["targets"]:
        shown = evaluate(target["expr"], samples)
        assert shown, target["expr"]
        assert all(math.isfinite(value) for value in shown.values())
        assert len({line_name(target["legendFormat"], dict(labels)) for labels in shown}) == len(shown)


def line_name(legend: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels[found[1]], legend)


@pytest.mark.parametrize(
    "wrong",
    [
        "cdc_publisher_lags",
        'cdc_publisher_lag_seconds{job="publisher"}',
        "cdc_publisher_cdc_raw_bytes / cdc_filler_segment_age_seconds",
    ],
)
def test_a_panel_that_shows_nothing_would_be_noticed(wrong: str) -> None:
    assert evaluate(wrong, scraped()) == {}


@pytest.mark.parametrize("name", PANELS)
def test_panels_lie_beside_each_other(name: str) -> None:
    panels = PANELS[name]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert {(place["w"], place["h"], place["x"] % 12, place["y"] % 8) for place in places} == {(12, 8, 0, 0)}


def test_the_dashboards_show_what_the_alerts_ask_for() -> None:
    shown = metric_names(target["expr"] for panel in ALL_PANELS for target in panel["targets"])
    assert metric_names(rule["expr"] for rule in RULES.values()) <= shown


def test_the_dashboards_are_a_set() -> None:
    """One for all programs together and one for each; each leads to the others, by their tag."""
    jobs = {"materializer", "transformers", "joinery", "archive", "warehouse"}
    assert DASHBOARDS.keys() == {"overview", "publishers", "fillers", "schematizer"} | jobs
    for name, dashboard in DASHBOARDS.items():
        assert dashboard["uid"] == f"cassandra-cdc-{name}"
        [link] = dashboard["links"]
        assert set(link["tags"]) <= set(dashboard["tags"])


def test_images_know_their_settings() -> None:
    names = re.findall(r"\b(CDC_[A-Z]+__[A-Z_]+)=", DOCKERFILE)
    assert len(names) == 11
    assert [setting(name) for name in settings_of(names)]


def test_each_image_starts_its_program() -> None:
    """`make verify WHAT=containers` builds and runs it; here it is seen that each has a stage, an entry and a port."""
    stages = dict(re.findall(r"^FROM \S+ AS ([\w-]+)\n((?:(?!FROM ).*\n?)*)", DOCKERFILE, re.MULTILINE))
    jobs = re.findall(r"^FROM spark-base AS (\w+)$", DOCKERFILE, re.MULTILINE)
    assert jobs == ["materializer", "transformer", "archive", "joinery", "warehouse", "spark"], "they share a layer"
    assert "/requirements/transformer.txt" in stages["spark-base"], "its requirements are the materializer's, and more"
    assert DOCKERFILE.count("COPY . .") == 1, "what the wheel is built of changes no layer of libraries"
    for unit in (DEPLOY / "systemd").glob("*.service"):
        program = unit.stem.removeprefix("cassandra-")
        assert re.search(rf"\[{program}[,\]]", stages[program])
        assert f'image.title="cassandra-{program}"' in stages[program]
        assert f'ENTRYPOINT ["cassandra-{program}"]' in stages[program]
        command = re.findall(r"^ExecStart=\S+ (\w+)$", unit.read_text(), re.MULTILINE)
        assert re.findall(r'^CMD \["(\w+)"\]$', stages[program], re.MULTILINE) == command
        assert "USER 999:999" in stages[program]
        port = setting(f"{program}.operations_port").default
        assert f"EXPOSE {port}\n" in stages[program]
        assert f"http://127.0.0.1:{port}/health" in stages[program]
        assert f"CDC_{program.upper()}__OPERATIONS_ADDRESS=0.0.0.0" in stages[program]
    assert "[schematizer,postgresql]" in stages["schematizer"]
    assert "[archive,joinery,transformer,warehouse]" in stages["spark"]


def test_the_libraries_of_an_image_are_those_of_its_extras(tmp_path: Path) -> None:
    """As the package's own metadata, made by setuptools, has them, with the extras that an extra names."""
    paths = (DEPLOY / "images" / "requirements.py", ROOT / "pyproject.toml", tmp_path / "requirements")
    subprocess.run([sys.executable, *map(str, paths)], check=True)
    for program in ("publisher", "filler", "schematizer", "postgresql", "transformer", "archive", "warehouse"):
        assert f"/requirements/{program}.txt" in DOCKERFILE
        lines = (tmp_path / "requirements" / f"{program}.txt").read_text().splitlines()
        assert {str(Requirement(line)) for line in lines} == expected_libraries({program, ""})


def expected_libraries(extras: set[str]) -> set[str]:
    """Return the requirements of the package with these extras on others."""
    found = [Requirement(line) for line in metadata.requires("cassandra-cdc-materializer") or ()]
    due = [one for one in found if one.marker is None or any(one.marker.evaluate({"extra": name}) for name in extras)]
    own = {name for one in due if one.name == "cassandra-cdc-materializer" for name in one.extras}
    if not own <= extras:
        return expected_libraries(extras | own)
    for one in due:
        one.marker = None
    return {str(one) for one in due if one.name != "cassandra-cdc-materializer"}


def test_each_program_has_a_port_of_its_own() -> None:
    """All may run on one machine."""
    ports = {known.name: known.default for known in all_settings() if known.name.endswith(".operations_port")}
    assert len(ports) == 8
    assert len(set(ports.values())) == len(ports)


def test_prometheus_scrapes_each_program_on_hosts() -> None:
    """Under the job's name that alerts select by, at the program's own port."""
    jobs = yaml.safe_load((DEPLOY / "prometheus" / "scrape-hosts.yml").read_text())["scrape_configs"]
    found = {
        job["job_name"]: {
            int(target.partition(":")[2]) for config in job["static_configs"] for target in config["targets"]
        }
        for job in jobs
    }
    ports = {known.name: known.default for known in all_settings() if known.name.endswith(".operations_port")}
    assert found == {f"cassandra-{name.partition('.')[0]}": {port} for name, port in ports.items()}


def test_the_alerts_become_a_rule_of_the_operator() -> None:
    """The command of the README, up to kubectl."""
    readme = (DEPLOY / "README.md").read_text()
    [command] = re.findall(r"^(sed .*?) \| kubectl apply -f -$", readme, re.MULTILINE | re.DOTALL)
    done = subprocess.run(["/bin/bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    rule = yaml.safe_load(done.stdout)
    assert rule["kind"] == "PrometheusRule"
    assert rule["metadata"]["name"] == "cassandra-cdc"
    assert rule["spec"] == yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())


def test_the_guide_has_each_port() -> None:
    guide = (ROOT / "docs" / "guides" / "monitor.md").read_text()
    ports = {known.name: known.default for known in all_settings() if known.name.endswith(".operations_port")}
    assert [port for port in ports.values() if f" | {port} | " not in guide] == []


def settings_of(variables: list[str]) -> Iterator[str]:
    """`CDC_TABLE__KEY` → `table.key`."""
    for variable in variables:
        table, key = variable.removeprefix("CDC_").lower().split("__")
        yield f"{table}.{key}"

"""deploy/compose: each service's settings are settings, and its ports and health check are in its image."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdc_common.settings.describe import setting
from cdc_common.settings.load import load_settings
from joinery.definition_file import load_joins

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "compose"
SERVICES: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
DOCKERFILE = (ROOT / "deploy" / "images" / "Dockerfile").read_text()
VERSIONS = dict(re.findall(r"^([A-Z_]+)=(.+)$", (FOLDER / ".env").read_text(), re.MULTILINE))
PROGRAMS = [name for name, service in SERVICES.items() if "build" in service]
each_program = pytest.mark.parametrize("name", PROGRAMS)


def stage(target: str) -> str:
    """The target's lines in the Dockerfile, with those of the stages that it is made from."""
    found = re.search(rf"^FROM (\S+) AS {target}\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.MULTILINE | re.DOTALL)
    if found is None:
        return ""
    return found[2] + stage(found[1])


def test_every_version_is_used_and_named() -> None:
    used = set(re.findall(r"\$\{(\w+)\}", (FOLDER / "compose.yaml").read_text()))
    assert used == VERSIONS.keys() - {"COMPOSE_PROJECT_NAME"}
    assert f'version = "{VERSIONS["CDC_VERSION"]}"\n' in (ROOT / "pyproject.toml").read_text()


@each_program
def test_its_settings_are_settings(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for variable, value in SERVICES[name]["environment"].items():
        monkeypatch.setenv(variable, str(value))
    loaded = load_settings(None, {}, secrets_of=())
    assert loaded.settings.registry.url == "http://registry:8081"
    assert loaded.settings.kafka.bootstrap_servers == "kafka:9092"


@each_program
def test_it_is_confined_and_its_ports_are_this_machines(name: str) -> None:
    service = SERVICES[name]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    lines = re.findall(r"^EXPOSE (.*)$", stage(service["build"]["target"]), re.MULTILINE)
    exposed = {port for line in lines for port in line.split()}
    for port in service["ports"]:
        address, _, inside = port.split(":")
        assert address == "127.0.0.1"
        assert inside in exposed


@each_program
def test_its_target_is_in_the_dockerfile_and_has_a_health_check(name: str) -> None:
    assert "HEALTHCHECK" in stage(SERVICES[name]["build"]["target"])


def test_the_joinery_has_joins() -> None:
    [mounted] = [volume for volume in SERVICES["joinery"]["volumes"] if volume.startswith("./")]
    source, inside, _ = mounted.split(":")
    assert load_joins(FOLDER / source)
    assert inside == setting("joinery.file").default_text.strip('"')


def test_what_is_waited_for_can_become_healthy() -> None:
    for service in SERVICES.values():
        for needed in service.get("depends_on", {}):
            assert "healthcheck" in SERVICES[needed] or needed in PROGRAMS

"""cassandra_cdc_testcontainers without an engine: `make verify WHAT=testcontainers` runs it on one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cassandra_cdc_testcontainers import Images
from cassandra_cdc_testcontainers.change_streams import MATERIALIZER, PUBLISHER, REGISTRY, program_environment
from cdc_common.settings.load import load_settings

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "guides" / "testcontainers.md").read_text()
EXAMPLE = (ROOT / "docs" / "examples" / "test_orders.py").read_text()


@pytest.mark.parametrize("own", [REGISTRY, PUBLISHER, MATERIALIZER, {}])
def test_its_settings_are_settings(own: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in program_environment(own).items():
        monkeypatch.setenv(name, value)
    loaded = load_settings(None, {}, secrets_of=()).settings
    assert (loaded.kafka.bootstrap_servers, loaded.registry.url) == ("kafka:9092", "http://registry:8081")


def test_a_confined_program_writes_to_tmp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its root is read-only. The registry's image has a volume of its own."""
    monkeypatch.chdir(tmp_path)
    for name, value in program_environment({**PUBLISHER, **MATERIALIZER}).items():
        monkeypatch.setenv(name, value)
    found: Any = load_settings(None, {}, secrets_of=()).settings
    written = [found.publisher.state_directory, found.materializer.state_directory]
    for path in (*written, Path(found.materializer.checkpoint_location)):
        assert path.is_relative_to("/tmp")  # noqa: S108 - the container's


def test_images_are_those_of_compose() -> None:
    compose = ROOT / "deploy" / "compose"
    versions = dict(re.findall(r"^([A-Z_]+)=(.+)$", (compose / ".env").read_text(), re.MULTILINE))
    services = yaml.safe_load((compose / "compose.yaml").read_text())["services"]
    images = Images()
    for name, service in services.items():
        if "profiles" in service:
            continue  # the archive
        image = re.sub(r"\$\{(\w+)\}", lambda found: versions[found[1]], service["image"])
        assert getattr(images, "schematizer" if name == "registry" else name) == image


def test_the_guide_shows_the_example() -> None:
    [shown] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert EXAMPLE.endswith(shown)

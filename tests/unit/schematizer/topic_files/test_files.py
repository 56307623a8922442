"""New files, JSON Schemas, and the models that both come from."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from click.testing import CliRunner

from schematizer.cli import main
from schematizer.topic_files.files.json_schemas import json_schema
from schematizer.topic_files.files.reading import read_repository
from schematizer.topic_files.rules.check import check_repository
from tests.support.schematizer.topic_repository import CATALOGUE, TOPIC, write_repository

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["topics", *arguments])
    return result.exit_code, result.output


def valid(name: str, content: object) -> bool:
    validator = jsonschema.Draft202012Validator(json_schema(name))
    return not list(validator.iter_errors(json.loads(json.dumps(content, default=str))))


@pytest.mark.parametrize("typology", ["event", "changelog", "job-queue", "log"])
def test_a_new_topic_lacks_only_what_people_write(tmp_path: Path, typology: str) -> None:
    assert run("init", str(tmp_path))[0] == 0
    assert (
        run("new", "acme/shop/orders", "--typology", typology, "--owner", "shop", "--repository", str(tmp_path))[0] == 0
    )
    repository = read_repository(tmp_path)
    assert [topic.environment for topic in repository.topics] == ["prod", "staging"]
    found = {finding.rule for finding in check_repository(repository, date(2026, 11, 26)).findings}
    lacking = {"T201", "T208", "T301"}  # the owner is not in the new catalogue.toml, no producer, no doc
    if typology in ("event", "changelog"):
        lacking.add("T302")
    assert found - {"T602"} == lacking


def test_new_overwrites_nothing(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert run("init", str(root))[0] == 1
    for place, typology in (("shop/orders", "event"), ("shop", "event"), ("shop/new", "none")):
        assert run("new", place, "--typology", typology, "--owner", "shop", "--repository", str(root))[0] == 1
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_the_json_schemas_take_what_the_models_take(tmp_path: Path) -> None:
    assert run("json-schemas", str(tmp_path))[0] == 0
    for name in ("catalogue", "topic"):
        written = json.loads((tmp_path / f"{name}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(written)
        assert written == json_schema(name)
    topic, catalogue = tomllib.loads(TOPIC), tomllib.loads(CATALOGUE)
    assert valid("topic", topic)
    assert valid("catalogue", catalogue)


@pytest.mark.parametrize(
    "change",
    [{"retention": 1}, {"partitions": 0}, {"pii": "secret"}, {"waivers": [{"rule": "T301"}]}, {"producers": ["web"]}],
    ids=["unknown", "range", "choice", "incomplete", "type"],
)
def test_the_json_schema_refuses_what_the_model_refuses(tmp_path: Path, change: dict[str, Any]) -> None:
    content = {**tomllib.loads(TOPIC), **change}
    assert not valid("topic", content)
    root = write_repository(tmp_path)
    folder = root / "shop" / "orders" / "prod"
    (folder / "topic.toml").unlink()
    (folder / "topic.json").write_text(json.dumps(content))
    assert {unread.rule for unread in read_repository(root).unread} == {"T001"}


def test_a_folder_without_a_catalogue(tmp_path: Path) -> None:
    status, output = run("check", "--repository", str(tmp_path))
    assert status == 1
    assert "no file catalogue.toml" in output

"""Each rule of `topics check` is broken once, found, and nothing else is."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from schematizer.cli import main
from schematizer.topic_files.files.reading import read_repository
from schematizer.topic_files.rules.check import Checked, check_repository
from schematizer.topic_files.rules.codes import RULES
from tests.support.schematizer.topic_repository import CITY, TOPIC, schema, write_repository, write_topic

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 11, 26)
TIME_MILLIS = {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-millis"}, "doc": "When."}


def checked(root: Path, today: date = TODAY) -> Checked:
    return check_repository(read_repository(root), today)


def rules_of(root: Path) -> set[str]:
    return {finding.rule for finding in checked(root).findings}


def put(root: Path, text: str = TOPIC, *, schemas: tuple[str, ...] = ()) -> None:
    """Write one topic in both environments."""
    for environment in ("staging", "prod"):
        write_topic(root, environment, "orders", text, schemas)


def field(name: str, kind: object = "string", **more: object) -> dict[str, Any]:
    return {"name": name, "type": kind, "doc": "A field.", **more}


def test_a_repository_without_findings(tmp_path: Path) -> None:
    result = checked(write_repository(tmp_path, 3))
    assert result.findings == []
    assert result.topics == 6


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("T001", TOPIC.replace('owner = "shop"', 'owner = "shop"\nretention = 3')),
        ("T102", TOPIC.replace('typology = "event"', 'typology = "event"\nname = "a b"')),
        ("T201", TOPIC.replace('owner = "shop"', 'owner = "none"')),
        ("T202", TOPIC.replace('service = "web"', 'service = "none"')),
        ("T203", TOPIC.replace('typology = "event"', 'typology = "none"')),
        ("T204", TOPIC.replace('throughput = "small"', 'throughput = "none"')),
        ("T205", TOPIC + '[[warehouses]]\nwarehouse = "none"'),
        ("T208", TOPIC.replace('[[producers]]\nservice = "web"', "")),
        ("T301", TOPIC.replace('doc = "Orders that were placed."', "")),
        ("T303", TOPIC + '[fields.none]\ndoc = "x"'),
        ("T403", TOPIC.replace('owner = "shop"', 'owner = "shop"\nencoding = "bytes"')),
        ("T501", TOPIC + '[fields.city]\ndoc = "x"\npii = true'),
        ("T503", TOPIC.replace('owner = "shop"', 'owner = "shop"\npii = "personal"')),
        ("T604", TOPIC.replace('"event_id"', '"none"')),
        ("T902", TOPIC + '[[waivers]]\nrule = "T301"\nreason = "x"\nuntil = 2027-01-01'),
        ("T903", TOPIC + '[[waivers]]\nrule = "T201"\nreason = "x"\nuntil = 2027-01-01'),
    ],
)
def test_a_topic_file_that_breaks_a_rule(tmp_path: Path, rule: str, text: str) -> None:
    put(write_repository(tmp_path), text)
    assert rules_of(tmp_path) == {rule}


WAREHOUSES = """
[warehouses.main]
principal = "User:loader"
group = "loader"
destination = "the analysts' PostgreSQL"
[warehouses.people]
principal = "User:people"
group = "people"
destination = "the one with personal data"
personal_data = "load"
"""
KEY = json.dumps({"type": "record", "name": "key", "fields": [{"name": "event_id", "type": "string"}]})
PERSONAL = TOPIC.replace('owner = "shop"', 'owner = "shop"\npii = "personal"') + "[fields.city]\npii = true\n"


@pytest.mark.parametrize(
    ("rules", "text", "has_key"),
    [
        (set(), TOPIC + '[[warehouses]]\nwarehouse = "main"\nform = "history"', True),
        ({"T209"}, TOPIC + '[[warehouses]]\nwarehouse = "main"\n' * 2, True),
        ({"T001"}, TOPIC + '[[warehouses]]\nwarehouse = "main"\nform = "changes"\ndeletes = "mark"', True),
        ({"T504"}, TOPIC + '[[warehouses]]\nwarehouse = "main"\npersonal_data = "load"', True),
        (set(), TOPIC + '[[warehouses]]\nwarehouse = "people"', True),
        ({"T505"}, PERSONAL + '[[warehouses]]\nwarehouse = "main"', True),
        (set(), PERSONAL + '[[warehouses]]\nwarehouse = "main"\npersonal_data = "leave_out"', True),
        (set(), PERSONAL + '[[warehouses]]\nwarehouse = "people"', True),
        ({"T802"}, TOPIC + '[[warehouses]]\nwarehouse = "main"', False),
    ],
)
def test_rules_about_warehouses(tmp_path: Path, rules: set[str], text: str, *, has_key: bool) -> None:
    root = write_repository(tmp_path)
    with (root / "catalogue.toml").open("a") as catalogue:
        catalogue.write(WAREHOUSES)
    put(root, text)
    if has_key:
        for folder in root.rglob("schemas"):
            (folder / "key.avsc").write_text(KEY)
    assert rules_of(root) == rules


@pytest.mark.parametrize(
    ("rule", "schemas"),
    [
        ("T103", (schema(field("City")),)),
        ("T302", (schema({**CITY, "doc": ""}),)),
        ("T401", (schema().replace("event_id", "eid"), schema().replace("timestamp-micros", "none"))),
        ("T402", (schema(TIME_MILLIS),)),
        ("T601", ("{}",)),
        ("T602", (schema(), schema(field("city")))),
        ("T602", (schema(CITY), schema(field("city", ["null", "int"], default=None)))),
        ("T603", (schema()[:-1] + ', "primaryKey": ["event_time"]}',)),
    ],
    ids=["names", "docs", "mandatory", "times", "avro", "no-default", "another-type", "key"],
)
def test_a_schema_that_breaks_a_rule(tmp_path: Path, rule: str, schemas: tuple[str, ...]) -> None:
    root = write_repository(tmp_path)
    for old in root.rglob("2.avsc"):
        old.unlink()
    put(root, schemas=schemas)
    assert rule in rules_of(root)


def test_rules_about_folders(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    (root / "lost").mkdir()
    (root / "lost" / "topic.toml").write_text(TOPIC)
    assert rules_of(root) == {"T002"}
    (root / "lost" / "topic.toml").unlink()
    folder = root / "shop" / "orders" / "staging"
    (folder / "topic.yaml").write_text("{}")
    assert rules_of(root) == {"T003", "T701"}
    (folder / "topic.yaml").unlink()
    (folder / "schemas" / "first.avsc").write_text(schema())
    assert rules_of(root) == {"T607"}
    (folder / "schemas" / "first.avsc").unlink()
    write_topic(root, "staging", "Orders")
    assert rules_of(root) == {"T101"}


def test_two_topics_of_one_name(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    named = TOPIC.replace('typology = "event"', 'typology = "event"\nname = "staging.shop.orders"')
    write_topic(root, "staging", "copy", named)
    assert rules_of(root) == {"T004"}
    write_topic(root, "staging", "copy", named.replace("staging.shop.orders", "staging_shop.orders"))
    assert rules_of(root) == {"T102"}


def test_staging_comes_first(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    write_topic(root, "prod", "orders", schemas=(schema(), schema(CITY), schema(CITY, {**CITY, "name": "street"})))
    assert rules_of(root) == {"T702"}
    write_topic(root, "prod", "new")
    assert rules_of(root) == {"T701", "T702"}
    write_topic(root, "staging", "orders", TOPIC.replace('"event_id"', '"event_time"'))
    assert rules_of(root) == {"T603", "T701", "T702"}


def test_a_waiver_counts_until_its_day(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    text = TOPIC.replace('doc = "Orders that were placed."', "")
    put(root, text + '[[waivers]]\nrule = "T301"\nreason = "soon"\nuntil = 2026-11-26')
    on_the_day, after = checked(root), checked(root, date(2026, 11, 27))
    assert on_the_day.findings == []
    assert {waived.waiver.reason for waived in on_the_day.waived} == {"soon"}
    assert {finding.rule for finding in after.findings} == {"T301", "T901"}


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    said = read_repository(root).topics[0].file.model_dump(mode="json")
    for environment, suffix in (("staging", "json"), ("prod", "yaml")):
        folder = root / "shop" / "orders" / environment
        (folder / "topic.toml").unlink()
        (folder / f"topic.{suffix}").write_text(json.dumps(said))  # JSON is YAML too
    assert {
        topic.path.rsplit(".")[-1]: topic.file.model_dump(mode="json") for topic in read_repository(root).topics
    } == {
        "json": said,
        "yaml": said,
    }
    assert rules_of(root) == set()


def test_the_command_writes_reports(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    put(root, TOPIC.replace('owner = "shop"', 'owner = "none"'))
    sarif, junit = tmp_path / "a.sarif", tmp_path / "a.xml"
    arguments = ["topics", "check", "--repository", str(root), "--sarif", str(sarif), "--junit", str(junit)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "shop/orders/prod/topic.toml: T201 the owner none is not known" in result.stderr
    assert "CDC-141" in result.stderr
    [run] = json.loads(sarif.read_text())["runs"]
    places = [found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for found in run["results"]]
    assert places == ["shop/orders/prod/topic.toml", "shop/orders/staging/topic.toml"]
    assert {found["ruleId"] for found in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    suite = ET.fromstring(junit.read_text()).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == (str(len(RULES)), "1")
    [case] = [case for case in suite if case.find("failure") is not None]
    assert str(case.get("name")).startswith("T201")
    put(root)
    assert CliRunner().invoke(main, ["topics", "check", "--repository", str(root)]).exit_code == 0


def test_rules_about_sources(tmp_path: Path) -> None:
    root = write_repository(tmp_path)
    folder = root / "shop" / "users" / "staging"
    folder.mkdir(parents=True)
    source = folder / "source.toml"
    text = 'namespace = "cdc.shop"\nsource = "users"\nowner = "shop"\n[fields.name]\ndoc = "Their name."\n'
    source.write_text(text)
    assert rules_of(root) == set()
    for rule, broken in (
        ("T001", text.replace("owner", "owners")),
        ("T201", text.replace('owner = "shop"', 'owner = "none"')),
        ("T201", text.replace('owner = "shop"\n', "")),
        ("T302", text.replace('doc = "Their name."', "pii = true")),
        ("T304", text.replace("cdc.shop", "staging.shop").replace("users", "orders")),
    ):
        source.write_text(broken)
        assert rules_of(root) == {rule}, broken
    source.write_text(text)
    (folder / "source.yaml").write_text("{}")
    assert rules_of(root) == {"T003"}
    (folder / "source.yaml").unlink()
    (root / "lost").mkdir()
    (root / "lost" / "source.toml").write_text(text)
    assert rules_of(root) == {"T002"}

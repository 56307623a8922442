"""CONTRIBUTING, SECURITY and the issue forms name what there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from dev.local_stack.process.paths import project_root
from dev.verify.__main__ import CHOICES

if TYPE_CHECKING:
    from pathlib import Path

ROOT = project_root()
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "dev/verify/upgrade/README.md")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
ANCHOR = re.compile(r"^#+ (.+)$", re.MULTILINE)
KINDS = {"markdown", "dropdown", "textarea", "input", "checkboxes"}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        anchors = {match.lower().replace(" ", "-") for match in ANCHOR.findall(target.read_text())} if heading else {""}
        assert heading in anchors, link


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_files_are_there(page: str) -> None:
    text = (ROOT / page).read_text()
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets
    names = {choice.name for choice in CHOICES}
    assert set(re.findall(r"WHAT=([a-z-]+)", text)) <= names
    for module in re.findall(r"python -m (dev\.[\w.]+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    for path in re.findall(r"`((?:tests|docs|dev|\.ci|\.github)/[\w./-]+)`", text):
        assert (ROOT / path.removesuffix("/VERSION")).exists(), path


@pytest.mark.parametrize("form", [form for form in FORMS if form.stem != "config"], ids=lambda form: form.stem)
def test_issue_forms_are_what_github_takes(form: Path) -> None:
    content = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= content.keys() <= {"name", "description", "body", "labels", "title"}
    assert {field["type"] for field in content["body"]} <= KINDS
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 1
    for field in fields:
        assert field["attributes"]["label"]
        assert ("options" in field["attributes"]) == (field["type"] in {"dropdown", "checkboxes"})
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_github_runs_what_any_ci_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    [job] = workflow["jobs"].values()
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    assert workflow["permissions"] == {"contents": "read"}


def test_hooks_run_what_make_install_installs() -> None:
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    lint = re.findall(r"ruff check|ruff format|dev\.tools\.words", (ROOT / "Makefile").read_text())
    assert repository["repo"] == "local"
    assert all(hook["entry"].startswith(".local/venv/bin/") for hook in repository["hooks"])
    assert all(any(name in hook["entry"] for hook in repository["hooks"]) for name in lint)

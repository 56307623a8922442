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
        anchors = {each.lower().replace(" ", "-") for each in ANCHOR.findall(target.read_text())} if heading else {""}
        assert heading in anchors, link


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_files_are_there(page: str) -> None:
    text = (ROOT / page).read_text()
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= targets
    names = {choice.name for choice in CHOICES}
    assert set(re.findall(r"WHAT=([a-z-]+)", text)) <= names
    for module in re.findall(r"python -m (tools\.\w+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
    for path in re.findall(r"`((?:tests|docs|tools|verify|\.ci)/[\w./]+)`", text):
        assert (ROOT / path.removesuffix("/VERSION")).exists(), path


@pytest.mark.parametrize("form", [form for form in FORMS if form.stem != "config"], ids=lambda form: form.stem)
def test_issue_forms_are_what_github_takes(form: Path) -> None:
    content = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= content.keys() <= {"name", "description", "body", "labels", "title"}
    assert {each["type"] for each in content["body"]} <= KINDS
    fields = [each for each in content["body"] if each["type"] != "markdown"]
    assert len({each["id"] for each in fields}) == len(fields) > 1
    for each in fields:
        assert each["attributes"]["label"]
        assert ("options" in each["attributes"]) == (each["type"] in {"dropdown", "checkboxes"})
    assert any(each.get("validations", {}).get("required") for each in fields)

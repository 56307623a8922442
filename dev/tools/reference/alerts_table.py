"""The table of alerts in docs/guides/monitor.md, from deploy/prometheus/alerts.yml."""

from __future__ import annotations

import re
from typing import Any

import yaml

from cdc_common.errors.reference import EXPLANATIONS
from dev.local_stack.process.paths import project_root
from dev.tools.reference.markdown import markdown_table

MARK = "<!-- alerts: make docs-reference -->\n"
_RULES = project_root() / "deploy" / "prometheus" / "alerts.yml"
# How the rules name a page, for whoever reads an alert elsewhere.
_PAGE = re.compile(r"docs/guides/([\w-]+\.md)")
_NOT_OF_ANCHORS = re.compile(r"[^\w\- ]")
_TITLES = {code.text: explanation.title for code, explanation in EXPLANATIONS.items()}


def with_alerts(page: str) -> str:
    """The page with a fresh table at its end."""
    before, _, _ = page.partition(MARK)
    return f"{before}{MARK}{_table()}\n"


def _table() -> str:
    groups = yaml.safe_load(_RULES.read_text(encoding="utf-8"))["groups"]
    return markdown_table(
        ("alert", "fires", "first steps", "code"),
        (_cells(rule) for group in groups for rule in group["rules"]),
    )


def _cells(rule: dict[str, Any]) -> tuple[str, str, str, str]:
    annotations = rule["annotations"]
    code = annotations["code"]
    anchor = _NOT_OF_ANCHORS.sub("", f"{code} {_TITLES[code]}".lower()).replace(" ", "-")
    return (
        f"`{rule['alert']}`",
        annotations["description"],
        _PAGE.sub(r"[\1](\1)", annotations["action"]),
        f"[{code}](../reference/errors.md#{anchor})",
    )

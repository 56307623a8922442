"""The alert rules of deploy/prometheus."""

from __future__ import annotations

import yaml

from dev.local_stack.process.paths import project_root

ROOT = project_root()
FILE = ROOT / "deploy" / "prometheus" / "alerts.yml"
GROUPS = yaml.safe_load(FILE.read_text())["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}

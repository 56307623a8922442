"""The dashboards of deploy/grafana."""

from __future__ import annotations

import json
from typing import Any

from dev.local_stack.process.paths import project_root

FOLDER = project_root() / "deploy" / "grafana"
DASHBOARDS: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}
PANELS: dict[str, list[Any]] = {name: dashboard["panels"] for name, dashboard in DASHBOARDS.items()}

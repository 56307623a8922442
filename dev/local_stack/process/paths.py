"""Folders for downloads and runs: `.local` and `.run` of the project folder."""

from __future__ import annotations

import os
from pathlib import Path


def project_root() -> Path:
    """The folder that holds pyproject.toml beside this package, otherwise the current one; CDC_PROJECT overrides."""
    override = os.environ.get("CDC_PROJECT")
    if override:
        return Path(override).resolve()
    checkout = Path(__file__).resolve().parents[3]
    return checkout if (checkout / "pyproject.toml").exists() else Path.cwd()


def local_folder() -> Path:
    """Downloads that are worth keeping: JREs and jars."""
    return project_root() / ".local"


def run_folder() -> Path:
    """Data, logs and addresses of the servers that run now."""
    return project_root() / ".run"

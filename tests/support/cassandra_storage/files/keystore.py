"""A Java keystore with keys of commit logs, and its password."""

from __future__ import annotations

from pathlib import Path

KEYSTORE = Path(__file__).with_name("keys.jceks")
PASSWORD = "secret1"

"""Compiles what pyproject.toml names under tool.cassandra-cdc, where CDC_COMPILED=1 asks for it (make dist)."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from setuptools import setup


def compiled() -> list[str]:
    with (Path(__file__).parent / "pyproject.toml").open("rb") as file:
        patterns: list[str] = tomllib.load(file)["tool"]["cassandra-cdc"]["compiled"]
    folder = Path(__file__).parent
    found = (path.relative_to(folder) for pattern in patterns for path in folder.glob(pattern))
    return sorted(str(path) for path in found if path.name != "__init__.py")


if os.environ.get("CDC_COMPILED") == "1":
    from mypyc.build import mypycify

    setup(ext_modules=mypycify(compiled(), opt_level="3", debug_level="0"))
else:
    setup()

"""Write what each extra of the package requires into a file of its own: `requirements.py PYPROJECT FOLDER`.

The Dockerfile runs it, with Python's library alone. Extras that name each other are written out.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def requirements_of(extra: str, package: str, extras: dict[str, list[str]]) -> set[str]:
    """Return the requirements of an extra on other packages."""
    found: set[str] = set()
    for requirement in extras[extra]:
        own = re.fullmatch(rf"{package}\[(.*)\]", requirement)
        if own is None:
            found.add(requirement)
            continue
        for name in own[1].split(","):
            found |= requirements_of(name.strip(), package, extras)
    return found


def write_requirements(pyproject: Path, folder: Path) -> None:
    """Write EXTRA.txt for each extra, with what the package requires without any."""
    project = tomllib.loads(pyproject.read_text())["project"]
    folder.mkdir()
    for extra in project["optional-dependencies"]:
        found = requirements_of(extra, project["name"], project["optional-dependencies"])
        lines = sorted(found | set(project["dependencies"]))
        (folder / f"{extra}.txt").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    write_requirements(Path(sys.argv[1]), Path(sys.argv[2]))

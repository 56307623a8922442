"""Print a bill of materials of the image that it runs in, as CycloneDX JSON: all packages, Java and jars.

The Dockerfile runs it when all is installed, with Python's library alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

JAR = re.compile(r"(.+?)-(\d.*)\.jar")
JAVA = Path("/opt/java/packages")  # the package that Java was made from, which is not installed here


def debian_packages() -> Iterator[dict[str, str]]:
    """Yield Debian's packages: the binary package's name, version and architecture."""
    command = ["dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${Architecture}\n"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines + (JAVA.read_text().splitlines() if JAVA.exists() else []):
        name, version, architecture = line.split("\t")
        yield component(name, version, f"pkg:deb/debian/{name}@{version}?arch={architecture}")


def python_packages() -> Iterator[dict[str, str]]:
    """Yield what pip has installed."""
    for found in distributions():
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()
        yield component(name, found.version, f"pkg:pypi/{name}@{found.version}")


def jars() -> Iterator[dict[str, str]]:
    """Yield PySpark's jars, whose group only their content has: a generic package of the file's name."""
    for folder in map(Path, sys.path):
        for file in sorted(folder.glob("pyspark/jars/*.jar")):
            if (found := JAR.fullmatch(file.name)) is not None:
                yield component(found[1], found[2], f"pkg:generic/{found[1]}@{found[2]}?file_name={file.name}")


def component(name: str, version: str, purl: str) -> dict[str, str]:
    """A component of CycloneDX."""
    purl = purl.replace("+", "%2B").replace("~", "%7E")
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def bill_of_materials() -> dict[str, object]:
    """The document: each component once, ordered by its purl."""
    components = {one["purl"]: one for found in (debian_packages(), python_packages(), jars()) for one in found}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": [components[purl] for purl in sorted(components)],
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=1)

"""The bill of materials of a release, as CycloneDX JSON: all that the lock files pin.

Python packages that the programs need are `required`, those of tests and tools `excluded`, and so are the jars: they
are the servers that tests, demo and benchmarks start. PySpark's own jars are part of the Python package pyspark.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, requires
from typing import TYPE_CHECKING, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dev.local_stack.install.commands import REQUIREMENTS
from dev.local_stack.process.paths import project_root
from dev.tools.jar_locks import SETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

PROGRAM_EXTRAS = (
    "publisher",
    "filler",
    "materializer",
    "schematizer",
    "transformer",
    "joinery",
    "archive",
    "warehouse",
)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class LockedPackage(NamedTuple):
    """A Python package as the lock pins it. Some have another version for older systems and Pythons."""

    # Its canonical name.
    name: str
    # Its version.
    version: str
    # The SHA-256 of each of its files.
    sha256: tuple[str, ...]
    # The systems and Pythons that it is for; "" for all.
    marker: str
    # Whether it is for this system and this Python.
    is_for_this: bool


def locked_packages(text: str) -> Iterator[LockedPackage]:
    """Read the packages that a requirements file with hashes pins. ValueError for a line that pins nothing."""
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        requirement = Requirement(line.partition("--hash")[0].strip())
        [pin] = requirement.specifier
        if pin.operator != "==":
            raise ValueError(f"{requirement.name} is not pinned to one version")
        marker, hashes = requirement.marker, tuple(sorted(HASH.findall(line)))
        is_for_this = marker is None or marker.evaluate()
        name = canonicalize_name(requirement.name)
        yield LockedPackage(name, pin.version, hashes, "" if marker is None else str(marker), is_for_this)


def bill_of_materials(name: str, version: str, commit: str, at: datetime) -> str:
    """The JSON of CycloneDX 1.6, the same for the same commit. ValueError if it does not fit CycloneDX's schema."""
    root = Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=f"pkg:pypi/{name}@{version}",
        purl=PackageURL("pypi", None, name, version),
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
    )
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{name}@{version}+{commit}"))
    bom.metadata.timestamp, bom.metadata.component = at, root
    packages = list(locked_packages(REQUIREMENTS.read_text(encoding="ascii")))
    needed = _needed({package.name for package in packages})
    made = [(package, _python_component(package, is_needed=package.name in needed)) for package in packages]
    for component in (*(component for _, component in made), *_jar_components()):
        bom.components.add(component)
    components = {package.name: component for package, component in made if package.is_for_this}
    bom.register_dependency(root, [components[name] for name in sorted(_direct())])
    for package in sorted(needed.keys() & components.keys()):
        of = sorted(_requirements(package, needed[package]) & components.keys())
        bom.register_dependency(components[package], [components[name] for name in of])
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        raise ValueError(f"the bill of materials does not fit CycloneDX's schema: {str(wrong).splitlines()[0]}")
    return text


def _python_component(package: LockedPackage, *, is_needed: bool) -> Component:
    purl = PackageURL("pypi", None, package.name, package.version)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        scope=ComponentScope.REQUIRED if is_needed else ComponentScope.EXCLUDED,
        bom_ref=str(purl),
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.sha256],
        properties=[Property(name="marker", value=package.marker)] if package.marker else [],
    )


def _jar_components() -> Iterator[Component]:
    """Each jar once, with the sets that have it as a property."""
    sets: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for jar_set in SETS:
        for jar in jar_set.jars():
            sets[jar.coordinate, jar.sha256].append(jar_set.name)
    for (coordinate, sha256), names in sorted(sets.items()):
        group, artifact, version, *more = coordinate.split(":")
        qualifiers = dict(zip(("classifier", "type"), filter(None, more), strict=False))
        purl = PackageURL("maven", group, artifact, version, qualifiers)
        yield Component(
            name=artifact,
            group=group,
            version=version,
            type=ComponentType.LIBRARY,
            scope=ComponentScope.EXCLUDED,
            bom_ref=str(purl),
            purl=purl,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)],
            properties=[Property(name="jar-set", value=name) for name in names],
        )


def _direct() -> set[str]:
    """Return the packages that pyproject.toml names for the programs."""
    with (project_root() / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in _all_extras(extras) for line in extras[extra])]
    return {str(canonicalize_name(Requirement(line).name)) for line in lines} - {project["name"]}


def _all_extras(extras: Mapping[str, Iterable[str]]) -> set[str]:
    """Those of the programs, with those of this project that they name."""
    found, left = set[str](), list(PROGRAM_EXTRAS)
    while left:
        extra = left.pop()
        if extra not in found:
            found.add(extra)
            named = (Requirement(line) for line in extras[extra])
            left += [extra for line in named for extra in line.extras if extra in extras]
    return found


def _needed(packages: AbstractSet[str]) -> dict[str, set[str]]:
    """The packages that the programs need on this machine, each with the extras of it that are asked for."""
    with (project_root() / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    left = [Requirement(line) for extra in _all_extras(extras) for line in extras[extra]]
    left += [Requirement(name) for name in _direct()]
    found: defaultdict[str, set[str]] = defaultdict(set)
    seen: set[tuple[str, frozenset[str]]] = set()
    while left:
        requirement = left.pop()
        name, of = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name in packages and (name, of) not in seen:
            seen.add((name, of))
            found[name] |= of
            left += _lines(name, of)
    return dict(found)


def _requirements(package: str, extras: Iterable[str]) -> set[str]:
    return {str(canonicalize_name(line.name)) for line in _lines(package, extras)}


def _lines(package: str, extras: Iterable[str]) -> list[Requirement]:
    """Return the packages that an installed package requires here, with extras of it."""
    try:
        lines = [Requirement(line) for line in requires(package) or ()]
    except PackageNotFoundError:  # of another system
        return []
    wanted = ("", *extras)
    return [
        line for line in lines if line.marker is None or any(line.marker.evaluate({"extra": extra}) for extra in wanted)
    ]

"""Builds the images of deploy/images/Dockerfile."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.utils import canonicalize_name

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from dev.verify.containers.engine import Engine

TARGETS = ("publisher", "filler", "schematizer", "materializer", "transformer", "archive", "warehouse", "joinery")
"""The programs. `spark` is one more, of the jobs on Kubernetes."""
WITHOUT_JAVA = ("publisher", "filler", "schematizer")
LABELS = ("title", "version", "licenses", "base.name")
JAVA = "pkg:deb/debian/openjdk-17-jre-headless"  # which is not installed: the images have a part of it
USER = "999:999"  # of Cassandra's own images, who owns cdc_raw
BILL = "/usr/share/sbom.cdx.json"
DOCKERFILE = "deploy/images/Dockerfile"


def image_of(target: str) -> str:
    """The name of the target's image, as deploy/ has it."""
    return f"cassandra-{target}:{version('cassandra-cdc-materializer')}"


def build(engine: Engine, target: str) -> None:
    """Build the target. The host's network reaches the package registries as the host does. CdcError."""
    root = str(project_root())
    dockerfile = str(project_root() / DOCKERFILE)
    engine.docker(
        "build", "-q", "--network", "host", "-f", dockerfile, "--target", target, "-t", image_of(target), root
    )


def faults(engine: Engine, target: str) -> list[str]:
    """Return the missing parts of the image: its user, a health check, labels, a bill of materials."""
    template = "{{.Config.User}}|{{if .Config.Healthcheck}}yes{{end}}|{{json .Config.Labels}}"
    user, health, labels = engine.docker("image", "inspect", "--format", template, image_of(target)).split("|", 2)
    found = []
    if user != USER:
        found.append(f"its user is {user or 'root'}")
    if not health and target in TARGETS:  # Kubernetes has probes of its own
        found.append("it has no HEALTHCHECK")
    found += [f"it has no label {name}" for name in LABELS if f"opencontainers.image.{name}" not in labels]
    return [*found, *_faults_of_the_bill(engine, image_of(target), has_java=target not in WITHOUT_JAVA)]


def _faults_of_the_bill(engine: Engine, image: str, *, has_java: bool) -> list[str]:
    """Return what is wrong with the image's bill of materials, which has each of its packages."""
    run = ("run", "--rm", "--network", "none", "--entrypoint")
    text = engine.docker(*run, "cat", image, BILL)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        return [f"its bill of materials is none of CycloneDX 1.6: {str(wrong).splitlines()[0]}"]
    purls = {component["purl"].partition("@")[0] for component in json.loads(text)["components"]}
    packages = engine.docker(*run, "dpkg-query", image, "--show", "--showformat", "${Package}\n").split()
    listed = json.loads(engine.docker(*run, "python", image, "-m", "pip", "list", "--format", "json"))
    expected = {f"pkg:deb/debian/{name.replace('+', '%2B')}" for name in packages}
    expected |= {f"pkg:pypi/{canonicalize_name(package['name'])}" for package in listed}
    expected |= {JAVA} if has_java else set()
    missing = sorted(expected - purls)
    return [f"its bill of materials lacks {len(missing)} packages, such as {missing[0]}"] if missing else []

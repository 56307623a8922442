"""The manifests of deploy/kubernetes: what they hold, and what the API's schemas say of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator

from dev.tools.kubernetes_schemas import MANIFESTS, POD_TEMPLATE, SCHEMAS, SPARK, kind_of, manifest_files, pod_templates
from tests.support.deploy import spark_application

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jsonschema.exceptions import ValidationError

KINDS: dict[str, Any] = {**json.loads(SCHEMAS.read_text())["kinds"], SPARK: spark_application.SCHEMA}
RESOURCES: list[dict[str, Any]] = [
    document for file in manifest_files() for document in yaml.safe_load_all(file.read_text())
]
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
SETTINGS: Path = MANIFESTS / "cdc.toml"


class Pod(NamedTuple):
    """The template of a resource's pods; `claims` are the volumes that come with a StatefulSet's pod."""

    name: str
    metadata: dict[str, Any]
    spec: dict[str, Any]
    claims: frozenset[str]

    @property
    def containers(self) -> list[dict[str, Any]]:
        """Its containers, and its native sidecars."""
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]


class Container(NamedTuple):
    pod: Pod
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def ports(self) -> dict[str, int]:
        return {port["name"]: port["containerPort"] for port in self.spec.get("ports", [])}

    @property
    def environment(self) -> dict[str, Any]:
        """Return the variables by name: a value, or where it comes from."""
        return {
            variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in self.spec.get("env", [])
        }


def errors(resource: dict[str, Any]) -> list[str]:
    """Return its errors by the schema of its kind; a SparkApplication's pod templates are looked at, too."""
    found = list(_errors(kind_of(resource), resource))
    if kind_of(resource) == SPARK:
        for template in pod_templates(resource):
            found += _errors(POD_TEMPLATE, template)
    return found


def _errors(kind: str, value: dict[str, Any]) -> Iterator[str]:
    for error in Draft202012Validator(KINDS[kind]).iter_errors(value):
        yield f"{kind} {error.json_path}: {_said(error)}"


def _said(error: ValidationError) -> str:
    is_unused = error.schema is False
    return "no schema yet, run dev.tools.kubernetes_schemas" if is_unused else error.message


def named(kind: str, name: str) -> dict[str, Any]:
    [found] = [resource for resource in RESOURCES if (resource["kind"], resource["metadata"]["name"]) == (kind, name)]
    return found


def pods() -> Iterator[Pod]:
    for resource in RESOURCES:
        name = resource["metadata"]["name"]
        if resource["kind"] == "StatefulSet":
            claims = frozenset(claim["metadata"]["name"] for claim in resource["spec"]["volumeClaimTemplates"])
            template = resource["spec"]["template"]
            yield Pod(name, template["metadata"], template["spec"], claims)
        elif resource["kind"] == "SparkApplication":
            for role in ("driver", "executor"):
                template = resource["spec"][role]["template"]
                yield Pod(f"{name}-{role}", template["metadata"], template["spec"], frozenset())


def containers() -> dict[str, Container]:
    """Return the containers by pod and name: cassandra-cdc/publisher."""
    return {f"{pod.name}/{spec['name']}": Container(pod, spec) for pod in pods() for spec in pod.containers}

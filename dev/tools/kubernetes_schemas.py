"""Makes the schemas that deploy/kubernetes is validated by: `python -m dev.tools.kubernetes_schemas`.

The schemas of Kubernetes come with the package kubernetes-validate, of 70 MB, which is installed into a temporary
folder. A SparkApplication is none of Kubernetes's kinds: tests/support/deploy/spark_application.py has its fields.

What is written is reduced to what our manifests use: of each object all names of its fields, of a field that is used
its whole schema, and `false` for one that is not. So a misspelt or misplaced field is found, and a manifest that begins
to use a field needs this program again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VALIDATOR = "kubernetes-validate==1.37.0"
VERSION = "1.37.0"  # of Kubernetes
MANIFESTS = project_root() / "deploy" / "kubernetes"
OF_KUSTOMIZE = ("kustomization.yaml", "image-fields.yaml")
SCHEMAS = project_root() / "tests" / "support" / "deploy" / "kubernetes_schemas.json"
SPARK = "sparkoperator.k8s.io/v1beta2 SparkApplication"
POD_TEMPLATE = "v1 PodTemplateSpec"
COMMENT = (
    "Made by dev/tools/kubernetes_schemas.py; do not edit. Reduced from the API schemas of Kubernetes (Copyright The "
    "Kubernetes Authors) under the Apache License 2.0."
)
KEPT = ("type", "enum", "pattern", "minimum", "maximum", "minItems", "minLength", "required", "anyOf", "oneOf")
Schema: TypeAlias = dict[str, Any]


def main() -> int:
    manifests = [manifest for file in manifest_files() for manifest in yaml.safe_load_all(file.read_text())]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, VALIDATOR]
        subprocess.run(command, check=True)
        reduced = _reduced(manifests, Kubernetes(folder))
    written = {"$comment": COMMENT, "kubernetes": VERSION, "kinds": dict(sorted(reduced.items()))}
    SCHEMAS.write_text(json.dumps(written, indent=1) + "\n")
    return 0


def manifest_files() -> list[Path]:
    """The manifests, without what kustomize alone reads."""
    return sorted(set(MANIFESTS.glob("*.yaml")) - {MANIFESTS / name for name in OF_KUSTOMIZE})


def kind_of(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['apiVersion']} {manifest['kind']}"


def pod_templates(application: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of a SparkApplication."""
    return [application["spec"][role]["template"] for role in ("driver", "executor")]


class Kubernetes:
    """The schemas in an installed kubernetes-validate; its strict ones refuse unknown fields."""

    def __init__(self, folder: str) -> None:
        schemas = Path(folder, "kubernetes_validate", "kubernetes-json-schema")
        self._folder = schemas / f"v{VERSION}-local-strict"
        self._definitions = json.loads((self._folder / "_definitions.json").read_text())["$defs"]

    def schema(self, kind: str) -> Schema:
        """`apps/v1 StatefulSet`: statefulset-apps-v1.json."""
        version, _, name = kind.partition(" ")
        group, _, number = version.rpartition("/")
        parts = [name.lower(), *filter(None, [group.partition(".")[0]]), number]
        found: Schema = json.loads((self._folder / f"{'-'.join(parts)}.json").read_text())
        return found

    def resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].rpartition("/")[2]]
        return schema


def _reduced(manifests: Sequence[dict[str, Any]], kubernetes: Kubernetes) -> dict[str, Schema]:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for manifest in manifests:
        kinds.setdefault(kind_of(manifest), []).append(manifest)
    applications = kinds.pop(SPARK)
    reduced = {kind: _used(kubernetes.schema(kind), found, kubernetes) for kind, found in kinds.items()}
    templates = [template for application in applications for template in pod_templates(application)]
    reduced[POD_TEMPLATE] = _used(kubernetes.schema(POD_TEMPLATE), templates, kubernetes)
    return reduced


def _used(schema: Schema, values: Sequence[Any], kubernetes: Kubernetes) -> Schema:
    """The schema as far as the values need it."""
    schema = kubernetes.resolved(schema)
    found = {key: schema[key] for key in KEPT if key in schema}
    if isinstance(found.get("type"), list):  # null stands for a field that is left out, which no manifest says
        found["type"] = [name for name in found["type"] if name != "null"]
    if "properties" in schema:
        found["properties"] = {
            name: _used(inner, fields, kubernetes) if (fields := _fields(values, name)) else False
            for name, inner in schema["properties"].items()
        }
        found["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        entries = [item for value in values if isinstance(value, dict) for item in value.values()]
        found["additionalProperties"] = _used(schema["additionalProperties"], entries, kubernetes)
    elif "items" in schema:
        items = [item for value in values if isinstance(value, list) for item in value]
        found["items"] = _used(schema["items"], items, kubernetes)
    return found


def _fields(values: Sequence[Any], name: str) -> list[Any]:
    return [value[name] for value in values if isinstance(value, dict) and name in value]


if __name__ == "__main__":
    sys.exit(main())

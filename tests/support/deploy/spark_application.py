"""The fields of a SparkApplication (sparkoperator.k8s.io/v1beta2) that our manifest uses, as its user guide names them.

Written by hand, not taken from the operator's CRD: a field that is missing here is refused, even if the operator knows
it. The pod templates are Kubernetes's own and are checked by its schema.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
MEMORY: Schema = {"type": "string", "pattern": "^[0-9]+[kmgt]b?$"}  # as Spark writes sizes
SECONDS: Schema = {"type": "integer", "minimum": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}


def _object(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_POD: Schema = {"cores": COUNT, "memory": MEMORY, "memoryOverhead": MEMORY, "template": {"type": "object"}}
_SPEC = _object(
    {
        "type": {"enum": ["Java", "Scala", "Python", "R"]},
        "pythonVersion": {"enum": ["2", "3"]},
        "mode": {"enum": ["cluster", "client"]},
        "sparkVersion": TEXT,
        "image": TEXT,
        "imagePullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        "mainApplicationFile": TEXT,
        "arguments": {"type": "array", "items": {"type": "string"}},
        "restartPolicy": _object(
            {
                "type": {"enum": ["Never", "OnFailure", "Always"]},
                "onFailureRetryInterval": SECONDS,
                "onSubmissionFailureRetryInterval": SECONDS,
            }
        ),
        "sparkConf": TEXTS,
        "driver": _object(_POD | {"serviceAccount": TEXT}),
        "executor": _object(_POD | {"instances": COUNT}),
    },
    ("type", "sparkVersion", "driver", "executor"),
)
SCHEMA: Schema = _object(
    {
        "apiVersion": {"const": "sparkoperator.k8s.io/v1beta2"},
        "kind": {"const": "SparkApplication"},
        "metadata": _object({"name": TEXT, "namespace": TEXT, "labels": TEXTS}, ("name",)),
        "spec": _SPEC,
    },
    ("apiVersion", "kind", "metadata", "spec"),
)

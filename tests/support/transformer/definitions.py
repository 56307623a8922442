"""Transformers for tests, from the TOML of their steps."""

from __future__ import annotations

import tomllib

from transformer.definition import Transformer, TransformersFile

HEAD = """\
[[transformer]]
name = "one"
source = { namespace = "cdc.shop", source = "orders" }
target = { namespace = "public.shop", source = "orders" }
"""


def transformer(steps: str) -> Transformer:
    """A transformer with the steps, each of which begins with [[transformer.step]]."""
    return TransformersFile.model_validate(tomllib.loads(HEAD + steps)).transformer[0]

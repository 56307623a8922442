"""JSON Schemas of the files, for editors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from schematizer.topic_files.files.catalogue_file import CatalogueFile
from schematizer.topic_files.files.source_file import SourceFile
from schematizer.topic_files.files.topic_file import TopicFile

if TYPE_CHECKING:
    from pathlib import Path

    from schematizer.topic_files.files.base import FileModel

MODELS: dict[str, type[FileModel]] = {"catalogue": CatalogueFile, "topic": TopicFile, "source": SourceFile}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(name: str) -> dict[str, Any]:
    """Return the schema of `catalogue`, `topic` or `source` files."""
    model = MODELS[name]
    return {"$schema": _DIALECT, **model.model_json_schema(), "title": f"{name}.toml"}


def write_json_schemas(folder: Path) -> list[Path]:
    """Write a schema for each kind of file into the folder, such as `topic.schema.json`, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in MODELS:
        path = folder / f"{name}.schema.json"
        path.write_text(json.dumps(json_schema(name), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(path)
    return written

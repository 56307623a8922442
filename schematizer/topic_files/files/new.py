"""Writes the files of a new topic, and of a new repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from schematizer.topic_files.files.parsing import files_named
from schematizer.topic_files.files.reading import CATALOGUE, SCHEMAS, TOPIC, read_repository

if TYPE_CHECKING:
    from pathlib import Path

    from schematizer.topic_files.files.catalogue_file import CatalogueFile

_CATALOGUE = """\
# What all topics of this repository share: docs/guides/topic-files.md.
levels = ["company", "domain", "topic"]    # folders above an environment's
name = "{domain}.{topic}"                  # Kafka's name of a topic

[environments.staging]
[environments.prod]
after = "staging"

[typologies.event]
doc = "Things that happened: each message is one, and never changes."
partitions = 6
cleanup = "delete"
retention_hours = 168
mandatory_fields = { event_id = "string", event_time = "long (timestamp-micros)" }

[typologies.changelog]
doc = "The newest message of each key is the state of a thing."
partitions = 6
cleanup = "compact"
is_keyed = true

[typologies.job-queue]
doc = "Work that one consumer does."
partitions = 12
cleanup = "delete"
retention_hours = 72

[typologies.log]
doc = "Messages for people and machines that watch."
partitions = 3
cleanup = "delete"
retention_hours = 24
encodings = ["avro", "json", "bytes"]

[throughput.small]
producer_bytes_per_second = 1_000_000
consumer_bytes_per_second = 2_000_000
"""
_AVRO = {"long (timestamp-micros)": {"type": "long", "logicalType": "timestamp-micros"}}


def new_repository(root: Path) -> Path:
    """Write a first `catalogue.toml`, and return its path. CdcError TOPIC_FILES if there is one."""
    if files_named(root, CATALOGUE):
        raise CdcError(Code.TOPIC_FILES, f"{root} has a catalogue file already.", "Change that one.")
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{CATALOGUE}.toml"
    path.write_text(_CATALOGUE, encoding="utf-8")
    return path


def new_topic(root: Path, place: str, typology: str, owner: str) -> list[Path]:
    """Write the files of a topic for each environment, and return their paths. `place`: its folders, as
    `acme/shop/orders`. CdcError TOPIC_FILES if they are there, or the place or the typology is not of the repository.
    """
    catalogue = read_repository(root).catalogue
    levels = place.strip("/").split("/")
    if len(levels) != len(catalogue.levels) or not all(levels):
        raise CdcError(
            Code.TOPIC_FILES, f"{place} is not {'/'.join(catalogue.levels)}.", "Name a folder of each level."
        )
    if typology not in catalogue.typologies:
        known = ", ".join(catalogue.typologies)
        raise CdcError(Code.TOPIC_FILES, f"There is no typology {typology}.", f"Choose one of {known}.")
    folders = [root.joinpath(*levels, environment) for environment in catalogue.environments]
    for folder in folders:
        if files_named(folder, TOPIC):
            raise CdcError(Code.TOPIC_FILES, f"{folder} has a topic file already.", "Change that one.")
    return [path for folder in folders for path in _write(folder, catalogue, typology, owner, levels[-1])]


def _write(folder: Path, catalogue: CatalogueFile, typology: str, owner: str, topic: str) -> list[Path]:
    template = catalogue.typologies[typology]
    schemas = folder / SCHEMAS
    schemas.mkdir(parents=True, exist_ok=True)
    is_keyed = "compact" in template.cleanup
    lines = [
        f"typology = {json.dumps(typology)}",
        'doc = ""                   # what the topic holds',
        f"owner = {json.dumps(owner)}",
        *(['primary_key = ["id"]'] if is_keyed else []),
        "producers = []             # [[producers]] with service = the name of one in catalogue.toml",
        "consumers = []",
    ]
    path = folder / f"{TOPIC}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if "avro" not in template.encodings:
        return [path]
    schema = schemas / "1.avsc"
    names = {**({"id": "string"} if is_keyed else {}), **template.mandatory_fields}
    fields = [_field(name, kind) for name, kind in names.items()]
    record = {"type": "record", "name": topic.replace("-", "_"), "fields": fields}
    schema.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return [path, schema]


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": _AVRO.get(kind, kind), "doc": ""}

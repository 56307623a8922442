"""The intent of a cut: which messages it has, how its files are made, and what they are called.

It is stored before the first file of the cut, under a name that the committed offsets give, and only once: of two
tasks that both believe to own the share, the second one adopts the intent of the first. So a cut has one set of files,
whoever makes them.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.records import BUCKET_US, Definition, PlannedFile, Range, SchemaPlan, ShareName
from archive.table_names import table_of_form, versioned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from archive.writer.rows import FileKey
    from stream_runtime.stores.store import Store

FORMAT_VERSION = 1


class Intent(NamedTuple):
    """The intent of one cut."""

    # The topic and the share.
    name: ShareName
    # The number of the cut: 1 for the share's first.
    cut: int
    # The messages of each partition.
    ranges: tuple[Range, ...]
    # The definition with which the files are made.
    definition: Definition
    # The plans of the schemas in the cut.
    schemas: tuple[SchemaPlan, ...]
    # The files.
    files: tuple[PlannedFile, ...]

    @property
    def path(self) -> str:
        return intent_path(self.name, self.cut)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT_VERSION,
            **self.name._asdict(),
            "cut": self.cut,
            "partitions": [one._asdict() for one in self.ranges],
            "definition": self.definition.as_json(),
            "schemas": [one._asdict() for one in self.schemas],
            "files": [one._asdict() for one in self.files],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Intent:
        """The intent of its JSON. ValueError, KeyError or TypeError if it is none."""
        if stored["format"] != FORMAT_VERSION:
            raise ValueError(f"format {stored['format']}")
        return cls(
            ShareName(stored["topic"], stored["topic_id"], stored["share"]),
            stored["cut"],
            tuple(Range(**one) for one in stored["partitions"]),
            Definition.from_json(stored["definition"]),
            tuple(SchemaPlan(**one) for one in stored["schemas"]),
            tuple(PlannedFile(**one) for one in stored["files"]),
        )


def intents_folder(name: ShareName) -> str:
    return f"_archive/intents/{name.topic}/{name.topic_id}/{name.share}"


def intent_path(name: ShareName, cut: int) -> str:
    return f"{intents_folder(name)}/{cut:012d}.json"


def read_intent(store: Store, name: ShareName, cut: int) -> Intent | None:
    """The intent of a cut; None if there is none yet. ValueError, KeyError or TypeError if it is damaged."""
    found = store.read(intent_path(name, cut))
    return None if found is None else Intent.from_json(json.loads(found))


def store_intent(store: Store, intent: Intent) -> Intent:
    """Store the intent unless the cut has one: the cut's intent."""
    data = json.dumps(intent.as_json(), ensure_ascii=False, separators=(",", ":")).encode()
    if store.put_new_bytes(intent.path, data):
        return intent
    found = read_intent(store, intent.name, intent.cut)
    assert found is not None, f"{intent.path} was there, and is not"
    return found


def plan_files(
    name: ShareName, definition: Definition, ranges: Iterable[Range], counts: Mapping[FileKey, int]
) -> tuple[PlannedFile, ...]:
    """The files of a cut, in the order of their paths."""
    ends = _ranges_in_name(name, tuple(ranges))
    files = [
        PlannedFile(f"{_folder(definition, key)}/{ends}{_suffix(key)}.parquet", *key, rows)
        for key, rows in counts.items()
    ]
    return tuple(sorted(files, key=lambda file: file.path))


def _ranges_in_name(name: ShareName, ranges: tuple[Range, ...]) -> str:
    """The topic, the partitions, and the first and last offset of each: written out for one partition, otherwise as a
    hash. The topic's id keeps a recreated topic's files apart.
    """
    text = json.dumps([name.topic_id, [(one.partition, one.start, one.end) for one in ranges]])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    used = [one for one in ranges if one.end > one.start]
    if len(used) == 1:
        [one] = used
        return f"{name.topic}-{one.partition}.{one.start}-{one.end - 1}-{digest}"
    return f"{name.topic}-{ranges[0].partition}..{ranges[-1].partition}-{digest}"


def _suffix(key: FileKey) -> str:
    schema = "" if key.schema_id is None else f"-s{key.schema_id}"
    return f"{schema}-bytes" if key.form == "bytes" else schema


def _folder(definition: Definition, key: FileKey) -> str:
    at = datetime.fromtimestamp(key.bucket * BUCKET_US[definition.bucket] // 1_000_000, UTC)
    hour = f"/event_hour={at:%H}" if definition.bucket == "hour" else ""
    when = f"event_date={at:%Y-%m-%d}{hour}"
    namespace, _, table = table_of_form(definition.table, key.form).rpartition(".")
    if definition.layout == "hive":
        return f"{namespace}/{table}/schema_version={key.version}/{when}"
    return f"{namespace}/{versioned(table, key.version)}/data/{when}"

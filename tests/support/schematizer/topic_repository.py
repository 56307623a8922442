"""A repository of topic files in a folder, as large as a test wants it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CATALOGUE = """
levels = ["domain", "topic"]
name = "{environment}.{domain}.{topic}"
link = "https://git.example/topics/{path}"

[environments.staging]
replication_factor = 1
[environments.prod]
after = "staging"
replication_factor = 1

[typologies.event]
doc = "Things that happened."
partitions = 2
retention_hours = 168
mandatory_fields = { event_id = "string", event_time = "long (timestamp-micros)" }
[typologies.changelog]
doc = "The newest message of each key."
partitions = 2
cleanup = "compact"
is_keyed = true

[throughput.small]
producer_bytes_per_second = 1_000_000
consumer_bytes_per_second = 2_000_000

[owners.shop]
contact = "#shop"
[services.web]
owner = "shop"
principal = "User:web"
[services.billing]
owner = "shop"
principal = "User:billing"
"""
TOPIC = """
typology = "event"
doc = "Orders that were placed."
owner = "shop"
throughput = "small"
primary_key = ["event_id"]
[[producers]]
service = "web"
[[consumers]]
service = "billing"
"""
FIELDS: list[dict[str, Any]] = [
    {"name": "event_id", "type": "string", "doc": "Which event it is."},
    {"name": "event_time", "type": {"type": "long", "logicalType": "timestamp-micros"}, "doc": "When it happened."},
]
CITY = {"name": "city", "type": ["null", "string"], "default": None, "doc": "Where."}


def schema(*more: dict[str, Any], name: str = "orders") -> str:
    """The text of a schema with the fields of an event, and more."""
    return json.dumps({"type": "record", "name": name, "fields": [*FIELDS, *more]})


def write_repository(root: Path, topics: int = 1) -> Path:
    """Write a repository without findings. Each topic is in both environments."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "catalogue.toml").write_text(CATALOGUE)
    for number in range(topics):
        for environment in ("staging", "prod"):
            write_topic(root, environment, f"orders{number or ''}")
    return root


def write_topic(root: Path, environment: str, topic: str, text: str = TOPIC, schemas: tuple[str, ...] = ()) -> Path:
    """Write a topic's folder, and return it. `schemas`: by default two that read each other."""
    folder = root / "shop" / topic / environment
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    (folder / "topic.toml").write_text(text)
    for number, content in enumerate(schemas or (schema(), schema(CITY)), 1):
        (folder / "schemas" / f"{number}.avsc").write_text(content)
    return folder

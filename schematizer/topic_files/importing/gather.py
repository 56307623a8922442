"""Reads what runs in an environment, as topic files can say it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cdc_common.clients.kafka import logged_admin
from cdc_common.clients.registry.kinds import Part
from schematizer.avro_schemas.parsing import InvalidSchemaError, parse
from schematizer.topic_files.applying.kafka import read_rights, read_topics
from schematizer.topic_files.applying.registry import Registry
from schematizer.topic_files.planning import rights as known
from schematizer.topic_files.planning.things import Kind
from schematizer.topic_files.planning.wanted import HOUR_MS
from schematizer.topic_names import parse_subject, parse_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cdc_common.clients.registry.views import Consumer, Producer
    from schematizer.settings import Settings
    from schematizer.topic_files.planning.rights import Right
    from schematizer.topic_files.planning.things import Content

UNKNOWN = "unknown"
"""The owner of all that has none."""
_SETTINGS = {"cleanup.policy": "cleanup", "min.insync.replicas": "min_in_sync_replicas"}
_WORDS = re.compile(r"[^a-z0-9]+")


@dataclass
class Gathered:
    """The content of an environment's servers, as files say it."""

    # The content of topic files, by Kafka's name of the topic.
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The texts of schemas of values in order, by topic.
    values: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    # The text of the newest schema of keys, by topic.
    keys: dict[str, str] = field(default_factory=dict)
    # The principal of each service.
    principals: dict[str, str] = field(default_factory=dict)
    # Prefixes of transactional ids, by service.
    transactional_ids: dict[str, list[str]] = field(default_factory=dict)
    # The owner of each service, if the registry says one.
    teams: dict[str, str] = field(default_factory=dict)
    # Lines about what files cannot say.
    left_out: list[str] = field(default_factory=list)


def gather(settings: Settings, pattern: str, pii_prefix: str) -> Gathered:
    """Read the topics whose names match the pattern. Those of Kafka itself and of the pipeline are left out."""
    admin = logged_admin(settings.kafka, {})
    names = [name for name in admin.list_topics().topics if _is_chosen(name, pattern, settings.kafka.topic_prefix)]
    gathered = Gathered()
    for thing, found in sorted(read_topics(admin, names).items()):
        gathered.topics[thing.name] = _topic_file(found.content)
    _add_rights(gathered, read_rights(admin) or [])
    with Registry(settings.registry, pii_prefix) as registry:
        _add_schemas(gathered, registry)
        _add_entries(gathered, registry, pii_prefix)
        _add_clients(gathered, registry.client.producers(), registry.client.consumers())
    return gathered


def service_name(principal: str) -> str:
    """Return a name for the service of a principal: the name of a user, or the common name of a certificate."""
    plain = principal.partition(":")[2] or principal
    common = re.match(r"CN=([^,]+)", plain)
    return _WORDS.sub("-", (common[1] if common else plain).lower()).strip("-") or UNKNOWN


def _is_chosen(name: str, pattern: str, own_prefix: str) -> bool:
    return not name.startswith(("__", f"{own_prefix}.")) and re.fullmatch(pattern, name) is not None


def _topic_file(content: Content) -> dict[str, Any]:
    file: dict[str, Any] = {"typology": "imported", "doc": None, "owner": UNKNOWN, "encoding": "bytes"}
    config: dict[str, Any] = {}
    for name, value in content.items():
        if name in ("partitions", "replication_factor"):
            file[name] = value
        elif name in _SETTINGS:
            file[_SETTINGS[name]] = int(str(value)) if str(value).isdigit() else value
        elif name == "retention.ms" and (str(value) == "-1" or int(str(value)) % HOUR_MS == 0):
            file["retention_hours"] = max(-1, int(str(value)) // HOUR_MS)
        else:
            config[name] = str(value)
    return {**file, **({"config": config} if config else {}), "producers": [], "consumers": []}


def _add_rights(gathered: Gathered, rights: list[Right]) -> None:
    """Make services of principals: those that write or read a topic by its whole name."""
    groups: dict[str, list[str]] = defaultdict(list)
    prefixes: dict[str, list[str]] = defaultdict(list)
    for right in rights:
        if right == known.group_right(right.principal, right.name):
            groups[right.principal].append(right.name)
        elif right == known.transaction_right(right.principal, right.name):
            prefixes[right.principal].append(right.name)
    for right in sorted(rights):
        if right.resource != known.TOPIC or right.pattern != known.LITERAL or right.name not in gathered.topics:
            continue
        file = gathered.topics[right.name]
        if [right] == known.producer_rights(right.principal, right.name):
            service = _service(gathered, right.principal)
            file["producers"].append({"service": service})
            gathered.transactional_ids[service] = sorted(prefixes[right.principal])
        elif [right] == known.consumer_rights(right.principal, right.name) and groups[right.principal]:
            service = _service(gathered, right.principal)
            file["consumers"] += [{"service": service, "group": group} for group in sorted(groups[right.principal])]
        else:
            gathered.left_out.append(f"right {right.thing.name}: files cannot ask for it")


def _service(gathered: Gathered, principal: str) -> str:
    """Return the service of a principal; two of one name get numbers."""
    name, number = service_name(principal), 1
    unique = name
    while gathered.principals.setdefault(unique, principal) != principal:
        number += 1
        unique = f"{name}-{number}"
    return unique


def _add_schemas(gathered: Gathered, registry: Registry) -> None:
    for version in registry.versions(gathered.topics):
        topic, part = parse_subject(version.subject) or ("", Part.VALUE)
        try:
            text = parse(version.text).canonical
        except InvalidSchemaError as error:
            gathered.left_out.append(f"schema {version.version} of {version.subject}: {error}")
            continue
        if part is Part.KEY:
            if topic in gathered.keys:
                gathered.left_out.append(f"schema of keys before version {version.version} of {version.subject}")
            gathered.keys[topic] = text
        else:
            gathered.values[topic].append(text)
            gathered.topics[topic]["encoding"] = "avro"
            schema = json.loads(text)
            if isinstance(schema, dict) and schema.get("primaryKey"):
                gathered.topics[topic]["primary_key"] = schema["primaryKey"]


def _add_entries(gathered: Gathered, registry: Registry, pii_prefix: str) -> None:
    """Docs, owners, personal fields and statuses."""
    for thing, found in registry.read(gathered.topics).items():
        if thing.kind is not Kind.ENTRY:
            continue
        file, content = gathered.topics[thing.name], found.content
        file.update({name: content[name] for name in ("doc", "owner", "status") if content.get(name)})
        name = parse_topic(thing.name, pii_prefix)
        said = registry.client.documentation(name.namespace, name.source)
        fields = {path: text.model_dump(exclude_defaults=True) for path, text in said.fields.items()}
        fields = {path: text for path, text in fields.items() if text}
        if fields:
            file["fields"] = fields
        if thing.name.startswith(pii_prefix) or any(text.get("pii") for text in fields.values()):
            file["pii"] = "personal"


def _add_clients(gathered: Gathered, producers: Iterable[Producer], consumers: Iterable[Consumer]) -> None:
    """Take teams and frequencies from the registry. A client without a right on the topic stays out."""
    for producer in producers:
        entries = _entries(gathered, producer.topic, "producers", {"service": producer.service})
        _take(gathered, producer, entries, f"producer {producer.service} of {producer.topic}")
    for consumer in consumers:
        wanted = {"service": consumer.service, "group": consumer.consumer_group}
        entries = _entries(gathered, consumer.topic, "consumers", wanted)
        _take(gathered, consumer, entries, f"consumer {consumer.service} of {consumer.topic}")


def _entries(gathered: Gathered, topic: str, part: str, wanted: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for entry in gathered.topics.get(topic, {}).get(part, []):
        if all(entry[name] == value for name, value in wanted.items()):
            yield entry


def _take(gathered: Gathered, client: Producer | Consumer, entries: Iterable[dict[str, Any]], name: str) -> None:
    is_known = False
    for entry in entries:
        entry["seconds"] = client.expected_frequency_seconds
        gathered.teams[client.service] = client.team
        is_known = True
    if not is_known and client.topic in gathered.topics:
        gathered.left_out.append(f"{name}: no right of Kafka is of a service of that name")

"""Reads topics and rights from Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)

from cdc_common.clients.kafka_admin import answer_of, topic_settings
from cdc_common.clients.kafka_errors import kafka_error
from schematizer.topic_files.planning.rights import LITERAL, TOPIC, Right
from schematizer.topic_files.planning.things import Found, Kind, Thing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from confluent_kafka.admin import AclBinding

    from schematizer.topic_files.planning.things import Value

SECONDS = 60.0
_OF_MOVES = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
"""Settings that kafka-reassign-partitions.sh sets while it moves partitions."""


class _Shape(NamedTuple):
    """A topic in the cluster's metadata."""

    # The number of partitions.
    partitions: int
    # The number of copies of its first partition.
    copies: int


def read_topics(admin: AdminClient, names: Collection[str]) -> dict[Thing, Found]:
    """Read those of the topics that exist, with their settings. CdcError if Kafka refuses or does not answer."""
    try:
        known = admin.list_topics(timeout=SECONDS).topics
        shapes = {name: _shape(known[name]) for name in names if name in known and known[name].error is None}
        found: dict[Thing, Found] = {}
        for name, answer in topic_settings(admin, shapes):
            found[Thing(Kind.TOPIC, name)] = _topic(name, shapes[name], answer_of(answer, SECONDS))
    except KafkaException as error:
        raise kafka_error("Topics and their settings cannot be read", error.args[0]) from error
    return found


def read_rights(admin: AdminClient) -> list[Right] | None:
    """Read all rights of the cluster; None if it has no authorizer. CdcError if Kafka refuses or does not answer."""
    try:
        found: Iterable[AclBinding] = answer_of(admin.describe_acls(_EVERY), SECONDS)
        if not found and not _has_authorizer(admin):
            return None
    except KafkaException as error:
        if error.args[0].code() == KafkaError.SECURITY_DISABLED:
            return None
        raise kafka_error("Rights (ACLs) cannot be read", error.args[0]) from error
    return [right_of_binding(binding) for binding in found]


def _has_authorizer(admin: AdminClient) -> bool:
    """Whether the brokers keep rights: librdkafka 2.16 answers without rights, and without an error, if they do not."""
    broker = str(min(admin.list_topics(timeout=SECONDS).brokers))
    [answer] = admin.describe_configs([ConfigResource(ResourceType.BROKER, broker)]).values()
    authorizer = answer_of(answer, SECONDS).get("authorizer.class.name")
    return authorizer is None or bool(authorizer.value)


def found_rights(rights: Iterable[Right]) -> dict[Thing, Found]:
    """Return rights as things. One on a topic by its whole name concerns this topic."""
    return {
        right.thing: Found(
            right.content, topic=right.name if (right.resource, right.pattern) == (TOPIC, LITERAL) else ""
        )
        for right in rights
    }


def right_of_binding(binding: AclBinding) -> Right:
    """Return a right as it is compared."""
    return Right(
        binding.principal,
        _name(binding.operation),
        _name(binding.restype),
        binding.name,
        _name(binding.resource_pattern_type),
        _name(binding.permission_type),
        binding.host,
    )


def _name(member: Any) -> str:  # noqa: ANN401 - a member of one of the client's enums
    name: str = member.name
    return name.lower()


def _shape(metadata: Any) -> _Shape:  # noqa: ANN401 - TopicMetadata has no types
    partitions = metadata.partitions
    return _Shape(len(partitions), len(partitions[min(partitions)].replicas))


def _topic(name: str, shape: _Shape, settings: dict[str, Any]) -> Found:
    content: dict[str, Value] = {"partitions": shape.partitions, "replication_factor": shape.copies}
    for key, entry in settings.items():
        if ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG and key not in _OF_MOVES:
            content[key] = entry.value
    effective = {key: entry.value for key, entry in settings.items()}
    # The files always name a policy: the brokers' default is compared like one that was set.
    content.setdefault("cleanup.policy", effective.get("cleanup.policy", "delete"))
    return Found(content, effective, name)


_ANY: Any = None
_EVERY = AclBindingFilter(
    ResourceType.ANY,
    _ANY,
    ResourcePatternType.ANY,
    _ANY,
    _ANY,
    AclOperation.ANY,
    AclPermissionType.ANY,
)

"""Changes topics and rights in Kafka. Each function takes many at once, and raises CdcError for the first refusal once
all have been answered: what was not refused is done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from cdc_common.clients.kafka_admin import answer_of
from cdc_common.clients.kafka_errors import kafka_error
from schematizer.topic_files.applying.kafka import SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from confluent_kafka.admin import AdminClient

    from schematizer.topic_files.planning.rights import Right
    from schematizer.topic_files.planning.things import Content, Value

SHAPE = frozenset({"partitions", "replication_factor"})
"""Properties of a topic that are no settings."""
_PAUSE_SECONDS = 0.2
_UNSET = ""


def create_topics(admin: AdminClient, topics: Mapping[str, Content]) -> None:
    """Create topics. One that exists already is left as it is: the next plan compares it."""
    new = [
        NewTopic(
            name,
            num_partitions=int(str(content["partitions"])),
            replication_factor=int(str(content["replication_factor"])),
            config={key: str(value) for key, value in content.items() if key not in SHAPE and value is not None},
        )
        for name, content in topics.items()
    ]
    _all("The topic cannot be created", admin.create_topics(new), ignored=KafkaError.TOPIC_ALREADY_EXISTS)


def recreate_topic(admin: AdminClient, name: str, content: Content) -> None:
    """Delete the topic with all its messages, and create it again."""
    delete_topics(admin, [name])
    deadline = time.monotonic() + SECONDS
    while name in admin.list_topics(timeout=SECONDS).topics:
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_SECONDS)
    create_topics(admin, {name: content})


def add_partitions(admin: AdminClient, counts: Mapping[str, int]) -> None:
    """Give topics so many partitions in all."""
    new = [NewPartitions(name, count) for name, count in counts.items()]
    _all("Partitions cannot be added to the topic", admin.create_partitions(new))


def alter_settings(admin: AdminClient, changes: Mapping[str, Mapping[str, Value]]) -> None:
    """Set settings of topics; None takes one back to the brokers' default."""
    resources = [
        ConfigResource(
            ResourceType.TOPIC, name, incremental_configs=[_entry(key, value) for key, value in settings.items()]
        )
        for name, settings in changes.items()
    ]
    answers = {resource.name: answer for resource, answer in admin.incremental_alter_configs(resources).items()}
    _all("The settings cannot be changed of the topic", answers)


def _entry(key: str, value: Value) -> ConfigEntry:
    if value is None:
        return ConfigEntry(key, _UNSET, incremental_operation=AlterConfigOpType.DELETE)
    return ConfigEntry(key, str(value), incremental_operation=AlterConfigOpType.SET)


def delete_topics(admin: AdminClient, names: Sequence[str]) -> None:
    """Delete topics. One that is gone already is left out."""
    _all(
        "The topic cannot be deleted",
        admin.delete_topics(list(names)),
        ignored=KafkaError.UNKNOWN_TOPIC_OR_PART,
    )


def create_rights(admin: AdminClient, rights: Iterable[Right]) -> None:
    """Create rights. Kafka keeps one that exists."""
    _all("The right cannot be granted", _by_text(admin.create_acls([_of(right, AclBinding) for right in rights])))


def delete_rights(admin: AdminClient, rights: Iterable[Right]) -> None:
    """Delete exactly these rights."""
    filters = [_of(right, AclBindingFilter) for right in rights]
    _all("The right cannot be removed", _by_text(admin.delete_acls(filters)))


def _of(right: Right, make: Callable[..., Any]) -> Any:  # noqa: ANN401 - a binding or a filter
    return make(
        ResourceType[right.resource.upper()],
        right.name,
        ResourcePatternType[right.pattern.upper()],
        right.principal,
        right.host,
        AclOperation[right.operation.upper()],
        AclPermissionType[right.permission.upper()],
    )


def _by_text(answers: Mapping[Any, Any]) -> dict[str, Any]:
    return {f"{binding.principal} on {binding.name}": answer for binding, answer in answers.items()}


def _all(problem: str, answers: Mapping[str, Any], ignored: int | None = None) -> None:
    """Wait for all answers. CdcError for the first refusal."""
    refused: list[tuple[str, KafkaError]] = []
    for name, answer in answers.items():
        try:
            answer_of(answer, SECONDS)
        except KafkaException as error:
            if error.args[0].code() != ignored:
                refused.append((name, error.args[0]))
    if refused:
        first, reason = refused[0]
        raise kafka_error(f"{problem} {first}", reason, awaits_topic=False)

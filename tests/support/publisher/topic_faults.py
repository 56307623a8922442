"""Does to a topic what an operator may do: deletes it, changes its settings, takes rights on it away, and gives them
back.
"""

from __future__ import annotations

import time

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

SECONDS = 120.0
ANYBODY = "User:ANONYMOUS"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def delete(admin: AdminClient, topic: str) -> None:
    admin.delete_topics([topic])[topic].result(SECONDS)
    deadline = time.monotonic() + SECONDS
    while topic in admin.list_topics().topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def configure(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def place_of(topic: str) -> tuple[ResourceType, str, ResourcePatternType, str, str]:
    return ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, ANYBODY, "*"


def take_away(admin: AdminClient, topic: str, right: str) -> None:
    """Anybody may do all but this with the topic."""
    denied = AclOperation[right]
    for operation, kind in ((AclOperation.ALL, AclPermissionType.ALLOW), (denied, AclPermissionType.DENY)):
        [done] = admin.create_acls([AclBinding(*place_of(topic), operation, kind)]).values()
        done.result(SECONDS)


def give_back(admin: AdminClient, topic: str, right: str) -> None:
    denied = AclBindingFilter(*place_of(topic), AclOperation[right], AclPermissionType.DENY)
    [done] = admin.delete_acls([denied]).values()
    done.result(SECONDS)

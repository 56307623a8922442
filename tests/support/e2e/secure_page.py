"""The page about security as tests read it: its commands, and a broker and clients that its users log in to."""

from __future__ import annotations

import re
import secrets
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from cdc_common.clients.kafka import client_config
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.servers.kafka import KafkaBroker

PAGE = (project_root() / "docs" / "guides" / "secure.md").read_text()
USERS = ("admin", "cdc-publisher", "cdc-materializer", "cdc-schematizer", "reader", "crm")
PASSWORDS = {name: secrets.token_hex(8) for name in USERS}
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
OPERATIONS = {"DescribeConfigs": AclOperation.DESCRIBE_CONFIGS}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def acls() -> Iterator[AclBinding]:
    """The page's kafka-acls.sh commands."""
    for command in re.sub(r"#.*", "", "\n".join(blocks("sh"))).replace("\\\n", " ").splitlines():
        words = shlex.split(command)
        given = [(name.removeprefix("--"), value) for name, value in pairwise(words)]
        options = dict(given)
        for kind in RESOURCES.keys() & options.keys():
            for operation in (value for name, value in given if name == "operation"):
                yield AclBinding(
                    RESOURCES[kind],
                    options[kind],
                    ResourcePatternType[options.get("resource-pattern-type", "literal").upper()],
                    options["allow-principal"],
                    "*",
                    OPERATIONS.get(operation) or AclOperation[operation.upper()],
                    AclPermissionType.ALLOW,
                )


def broker_settings() -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    login = f'username="admin" password="{PASSWORDS["admin"]}"'
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{module} required {login} {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }


def login(user: str) -> dict[str, str]:
    """The user's settings in `[kafka]`."""
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_username": user, "sasl_password": PASSWORDS[user]}


def client_of(broker: KafkaBroker, user: str) -> dict[str, Any]:
    return client_config(KafkaSettings.model_validate({"bootstrap_servers": broker.bootstrap_servers, **login(user)}))

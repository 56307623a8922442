"""A broker that asks who one is, by SCRAM or by a certificate, and allows only what ACLs say."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from cdc_common.clients.kafka import client_config
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.e2e.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

SECONDS = 60.0
ADMIN = "admin"
_STORE_PASSWORD = "changeit"


class AuthorizedKafka(KafkaBroker):
    """A broker with three listeners: one for SCRAM, one for client certificates, one open that is the superuser's.

    `folder` gets the certificates.
    """

    def __init__(self, folder: Path, users: Iterable[str]) -> None:
        self.passwords = {user: secrets.token_hex(8) for user in (ADMIN, *users)}
        self.authority = Authority(folder)
        self._stores = self.authority.java_stores([LOCALHOST], _STORE_PASSWORD)
        self.sasl_port, self.tls_port = free_ports(2)
        super().__init__(heap_mib=512)

    def properties(self) -> dict[str, str]:
        """This broker's server.properties."""
        own = super().properties()
        keys, trusted = map(str, self._stores)
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        more = f",SASL_PLAINTEXT://{self.address}:{self.sasl_port},SSL://{self.address}:{self.tls_port}"
        return {
            **own,
            "listeners": own["listeners"] + more,
            "advertised.listeners": own["advertised.listeners"] + more,
            "listener.security.protocol.map": own["listener.security.protocol.map"]
            + ",SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{module} required;",
            "ssl.client.auth": "required",
            "ssl.keystore.location": keys,
            "ssl.keystore.password": _STORE_PASSWORD,
            "ssl.keystore.type": "PKCS12",
            "ssl.truststore.location": trusted,
            "ssl.truststore.password": _STORE_PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
        }

    def add_users(self) -> None:
        """Give all users their passwords."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        new: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, info, password.encode()) for user, password in self.passwords.items()
        ]
        admin = self.admin()  # without a reference the client would end before it answers
        for answer in admin.alter_user_scram_credentials(new).values():
            answer.result(SECONDS)

    def allow(self, user: str, operations: Mapping[ResourceType, Iterable[str]]) -> None:
        """Allow a user these operations on all topics and on the cluster."""
        names = {ResourceType.TOPIC: "*", ResourceType.BROKER: "kafka-cluster"}
        new = [
            AclBinding(
                resource,
                names[resource],
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation[name],
                AclPermissionType.ALLOW,
            )
            for resource, allowed in operations.items()
            for name in allowed
        ]
        admin = self.admin()
        for answer in admin.create_acls(new).values():
            answer.result(SECONDS)

    def admin(self) -> AdminClient:
        """Return a client of the superuser."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers})

    def settings_of(self, user: str) -> dict[str, str]:
        """Return `[kafka]` for a user with a password."""
        return {
            "bootstrap_servers": f"{self.address}:{self.sasl_port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": user,
            "sasl_password": self.passwords[user],
        }

    def settings_with_certificate(self, name: str) -> dict[str, str]:
        """Return `[kafka]` for the holder of a certificate of this name: the principal `User:CN=name`."""
        return {
            "bootstrap_servers": f"{self.address}:{self.tls_port}",
            "security_protocol": "SSL",
            "ssl_ca_file": str(self.authority.file),
            "ssl_identity_file": str(self.authority.identity_file(name)),
        }

    @staticmethod
    def client(settings: dict[str, str]) -> dict[str, Any]:
        """Return the properties of a client with such settings."""
        return client_config(KafkaSettings.model_validate(settings))
